package limit

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"time"
)

// Table limits the things that clients hold beyond their requests, such as upload sessions. An entry that is not in use
// makes room for another one of its client, or of any client if all clients together are at the limit, once it was idle
// for a while. It is safe for concurrent use.
type Table struct {
	things string
	idle   time.Duration

	mu      sync.Mutex
	share   share
	entries map[string]*Entry
	bytes   map[string]int64 // by client
	total   int64
}

// Entry is a thing that a client holds.
type Entry struct {
	client Client
	key    string
	size   int64
	users  int
	used   time.Time
	isFull bool
}

// entryLife is the time after which an entry that is not in use is removed in any case.
const entryLife = 2 * time.Hour

// NewTable returns a table for a number of things, which are named so in messages. An entry is idle after the given
// time without use.
func NewTable(most int, things string, idle time.Duration) *Table {
	return &Table{
		things: things, idle: idle, share: share{most: most}, entries: map[string]*Entry{}, bytes: map[string]int64{},
	}
}

// Use returns the entry with a key, which is in use until Done is called. Without one, it adds one for the client, or
// returns the reason for which it does not. Removed are the keys of the entries that made room.
func (t *Table) Use(c Client, key string) (e *Entry, isNew bool, removed []string, refused *Refusal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.entries[key]; e != nil {
		e.users++
		return e, false, nil, nil
	}
	removed = t.removeIdle(entryLife, func(*Entry) bool { return true }, len(t.entries))
	refused = t.refusal(c)
	if refused != nil {
		selects := func(e *Entry) bool { return !refused.isOwn || e.client == c }
		removed = append(removed, t.removeIdle(t.idle, selects, 1)...)
		refused = t.refusal(c)
	}
	if refused != nil {
		return nil, false, removed, refused
	}
	e = &Entry{client: c, key: key, users: 1, used: time.Now()}
	t.entries[key] = e
	t.share.add(c, 1)
	return e, true, removed, nil
}

func (t *Table) refusal(c Client) *Refusal {
	return t.share.refusal(c, t.things, "complete or cancel some of them, or try again in a minute")
}

// removeIdle removes the entries that were idle for a time, the oldest first, and returns their keys.
func (t *Table) removeIdle(idle time.Duration, selects func(*Entry) bool, most int) []string {
	var found []*Entry
	oldest := time.Now().Add(-idle)
	for _, e := range t.entries {
		if e.users == 0 && e.used.Before(oldest) && selects(e) {
			found = append(found, e)
		}
	}
	slices.SortFunc(found, func(a, b *Entry) int { return a.used.Compare(b.used) })
	var keys []string
	for _, e := range found[:min(len(found), most)] {
		keys = append(keys, e.key)
		t.remove(e)
	}
	return keys
}

// Done ends the use of an entry.
func (t *Table) Done(e *Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e.users--
	e.used = time.Now()
}

// Rename changes the key of an entry. It replaces another entry with the key.
func (t *Table) Rename(e *Entry, key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.key == key || t.entries[e.key] != e {
		return
	}
	if other := t.entries[key]; other != nil {
		t.remove(other)
	}
	delete(t.entries, e.key)
	e.key = key
	t.entries[key] = e
}

// Remove removes the entry with a key.
func (t *Table) Remove(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.entries[key]; e != nil {
		t.remove(e)
	}
}

func (t *Table) remove(e *Entry) {
	delete(t.entries, e.key)
	t.share.add(e.client, -1)
	t.grow(e, -e.size)
}

// Fill makes an entry one that cannot grow, and whose bytes were removed.
func (t *Table) Fill(e *Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.entries[e.key] == e {
		t.grow(e, -e.size)
	}
	e.isFull = true
}

// Grow adds bytes to the size of an entry, and returns it.
func (t *Table) Grow(e *Entry, n int64) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.entries[e.key] == e {
		t.grow(e, n)
	}
	if e.isFull {
		return math.MaxInt64
	}
	return e.size
}

// CheckRoom returns the reason for which an entry may not grow by n bytes, where room is the disk space that all
// entries can still use; nil if it may. A client may use half of the space that the entries have or can use.
func (t *Table) CheckRoom(e *Entry, n, room int64) *Refusal {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n > room {
		return errDiskFull()
	}
	if most := (room + t.total) / 2; t.bytes[e.client.Key]+n > most {
		return &Refusal{
			what: fmt.Sprintf("the client has %s with %d bytes, and at most %d are allowed now",
				t.things, t.bytes[e.client.Key], most),
			advice: "complete or cancel some of them", isOwn: true,
		}
	}
	return nil
}

func (t *Table) grow(e *Entry, n int64) {
	e.size += n
	t.total += n
	if t.bytes[e.client.Key] += n; t.bytes[e.client.Key] == 0 {
		delete(t.bytes, e.client.Key)
	}
}

// Len returns the number of entries.
func (t *Table) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.entries)
}
