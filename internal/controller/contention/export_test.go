package contention

// MaxObjects is exported for tests.
const MaxObjects = maxObjects

// Len returns the number of objects that a brake remembers.
func (b *Brake) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.objects)
}
