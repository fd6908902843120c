package main

import (
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// Readers, writers of new ids and writers of known ids at once: every id ends with what its last writer stored, and
// was created once.
func TestStoreUnderAllThreeCases(t *testing.T) {
	const ids, writers = 200, 8
	entities := newStore(0)
	var running sync.WaitGroup
	created := make([]int, writers)
	for writer := range writers {
		running.Go(func() {
			for id := range int64(ids) {
				if entities.put(Entity{ID: id, Description: "early", Value: float64(writer)}) {
					created[writer]++
				}
				if found, known := entities.get(id); !known || found.ID != id {
					t.Errorf("id %d: got %v", id, found)
				}
			}
			for id := int64(writer); id < ids; id += writers {
				entities.put(Entity{ID: id, Description: "late", Value: float64(id)})
			}
		})
	}
	running.Wait()
	sum := 0
	for _, count := range created {
		sum += count
	}
	if sum != ids {
		t.Errorf("%d ids created, there are %d", sum, ids)
	}
	for id := range int64(ids) {
		if found, known := entities.get(id); !known || found.ID != id {
			t.Errorf("id %d: got %v", id, found)
		}
	}
}

// Two writers of each id at once, as in the stress test: the entity is one of theirs, whole.
func TestTwoWritersOfAnId(t *testing.T) {
	entities := newStore(0)
	for id := range int64(500) {
		var running sync.WaitGroup
		for _, name := range []string{"one", "other"} {
			running.Go(func() { entities.put(Entity{ID: id, Description: name, Value: float64(len(name))}) })
		}
		running.Wait()
		if found, _ := entities.get(id); found.Value != float64(len(found.Description)) || found.ID != id {
			t.Fatalf("half of each: %v", found)
		}
	}
}

// The locks that the document prints are a data race, and the detector says so.
func TestThePrintedLocksAreARace(t *testing.T) {
	said, err := exec.Command("go", "run", "-race", "./testdata/printed").CombinedOutput()
	if err == nil {
		t.Fatal("the race detector passed it")
	}
	if !strings.Contains(string(said), "WARNING: DATA RACE") {
		t.Fatalf("it failed for another reason: %s", said)
	}
}

// A store begins with as many entities as it was told to, and with no other.
func TestStoreBeginsWithEntities(t *testing.T) {
	entities := newStore(3)
	if found, known := entities.get(3); !known || found != (Entity{ID: 3, Description: "entity 3", Value: 1.5}) {
		t.Errorf("id 3: got %v, %v", found, known)
	}
	if _, known := entities.get(4); known || len(entities.entries) != 3 {
		t.Errorf("got %d entities, expected 3", len(entities.entries))
	}
}
