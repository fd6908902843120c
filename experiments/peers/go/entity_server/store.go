package main

import (
	"fmt"
	"sync"
)

// Entity is what the server keeps.
type Entity struct {
	ID          int64   `json:"id"`
	Description string  `json:"description"`
	Value       float64 `json:"value"`
}

// store keeps entities under locks of two levels. Whoever locks an entry holds the map's lock, shared at least.
type store struct {
	lock    sync.RWMutex // guards the map: which entries there are
	entries map[int64]*entry
}

type entry struct {
	lock   sync.RWMutex // guards the entity
	entity Entity
}

// newStore has so many entities, with the ids from 1: "entity N" with the value N / 2.
func newStore(entities int) *store {
	made := &store{entries: map[int64]*entry{}}
	for id := int64(1); id <= int64(entities); id++ {
		made.put(Entity{ID: id, Description: fmt.Sprintf("entity %d", id), Value: float64(id) / 2})
	}
	return made
}

// get locks the map and the entry, both shared.
func (s *store) get(id int64) (Entity, bool) {
	s.lock.RLock()
	defer s.lock.RUnlock()
	found, known := s.entries[id]
	if !known {
		return Entity{}, false
	}
	found.lock.RLock()
	defer found.lock.RUnlock()
	return found.entity, true
}

// put stores an entity and says whether its id is new.
func (s *store) put(entity Entity) bool {
	return !s.replace(entity) && s.add(entity)
}

// replace is for a known id: the map's lock shared, the entry's alone. The map itself is not written.
func (s *store) replace(entity Entity) bool {
	s.lock.RLock()
	defer s.lock.RUnlock()
	found, known := s.entries[entity.ID]
	if !known {
		return false
	}
	found.lock.Lock()
	defer found.lock.Unlock()
	found.entity = entity
	return true
}

// add is for a new id: the map's lock alone, so that nobody holds an entry's. Says whether it was still new then.
func (s *store) add(entity Entity) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	if found, known := s.entries[entity.ID]; known { // another request was first
		found.entity = entity
		return false
	}
	s.entries[entity.ID] = &entry{entity: entity}
	return true
}
