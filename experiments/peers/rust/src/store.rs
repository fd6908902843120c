//! Entities under locks of two levels: one on the map, one on each entry.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use serde::{Deserialize, Serialize};

/// What the server keeps.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Entity {
    pub id: i64,
    pub description: String,
    pub value: f64,
}

/// Whoever locks an entry holds the map's lock, shared at least. No lock is poisoned: nothing panics under one.
#[derive(Default)]
pub struct Store {
    entries: RwLock<HashMap<i64, Arc<RwLock<Entity>>>>,
}

impl Store {
    /// A store of so many entities, with the ids from 1: `entity N` with the value N / 2.
    pub fn with(entities: i64) -> Store {
        let store = Store::default();
        for id in 1..=entities {
            store.put(Entity { id, description: format!("entity {id}"), value: id as f64 / 2.0 });
        }
        store
    }

    /// Locks the map and the entry, both shared.
    pub fn get(&self, id: i64) -> Option<Entity> {
        let entries = self.entries.read().unwrap();
        let entity = entries.get(&id)?.read().unwrap();
        Some(entity.clone())
    }

    /// Stores an entity and says whether its id is new.
    pub fn put(&self, entity: Entity) -> bool {
        match self.replace(entity) {
            Ok(()) => false,
            Err(entity) => self.add(entity),
        }
    }

    /// For a known id: the map's lock shared, the entry's alone. Gives the entity back where the id is new.
    fn replace(&self, entity: Entity) -> Result<(), Entity> {
        let entries = self.entries.read().unwrap();
        match entries.get(&entity.id) {
            Some(entry) => {
                *entry.write().unwrap() = entity;
                Ok(())
            }
            None => Err(entity),
        }
    }

    /// For a new id: the map's lock alone. Says whether it was still new then: another request may have been first.
    fn add(&self, entity: Entity) -> bool {
        let mut entries = self.entries.write().unwrap();
        entries.insert(entity.id, Arc::new(RwLock::new(entity))).is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    fn entity(id: i64, description: &str, value: f64) -> Entity {
        Entity { id, description: description.into(), value }
    }

    /// An id is absent, then new, then known.
    #[test]
    fn get_and_put() {
        let store = Store::default();
        assert_eq!(store.get(7), None);
        assert!(store.put(entity(7, "first", 0.5)));
        assert!(!store.put(entity(7, "second", 1.5)));
        assert_eq!(store.get(7), Some(entity(7, "second", 1.5)));
    }

    /// A store begins with as many entities as it was told to, and with no other.
    #[test]
    fn with_entities() {
        let store = Store::with(3);
        assert_eq!(store.get(3), Some(entity(3, "entity 3", 1.5)));
        assert_eq!(store.get(4), None);
    }

    /// Readers, writers of new ids and of known ids at once: each id is created once, and what is read is whole.
    #[test]
    fn all_three_cases_at_once() {
        let (store, created) = (Store::default(), AtomicUsize::new(0));
        thread::scope(|scope| {
            for writer in 0..8 {
                let (store, created) = (&store, &created);
                scope.spawn(move || {
                    for id in 0..500 {
                        if store.put(entity(id, &"x".repeat(writer), writer as f64)) {
                            created.fetch_add(1, Ordering::Relaxed);
                        }
                        let found = store.get(id).expect("it was just stored");
                        assert_eq!((found.id, found.description.len() as f64), (id, found.value));
                    }
                });
            }
        });
        assert_eq!(created.into_inner(), 500);
    }
}
