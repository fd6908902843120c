// The locks of an update as the document prints them, kept only to be found: the race detector must report it.
//
// Changing an entity replaces the map's whole entry, which writes the map, under the map's read lock. Two updates of
// different ids hold that lock at the same time and different entries' locks. This program does no more than that.
package main

import "sync"

type entity struct{ value float64 }

type mapEntry struct {
	mux    *sync.RWMutex
	entity entity
}

func main() {
	var mapMux sync.RWMutex
	entries := map[int64]mapEntry{}
	for id := range int64(2) {
		entries[id] = mapEntry{mux: &sync.RWMutex{}}
	}
	var updating sync.WaitGroup
	for id := range int64(2) {
		updating.Add(1)
		go func() {
			defer updating.Done()
			for range 1000 {
				mapMux.RLock()
				entry := entries[id]
				entry.mux.Lock()
				entries[id] = mapEntry{mux: entry.mux, entity: entity{value: 1}}
				entry.mux.Unlock()
				mapMux.RUnlock()
			}
		}()
	}
	updating.Wait()
}
