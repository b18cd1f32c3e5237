package keyedmutex

import (
	"context"
	"errors"
	"testing"
)

// One holder excludes the others of the same key, and no holder of another key; a key that is not in
// use takes no memory.
func TestALockExcludesTheHoldersOfItsKeyAlone(t *testing.T) {
	var m Mutex[string]
	unlockA, err := m.Lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	unlockB, err := m.Lock(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Lock(ended, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("a held lock: %v, want the end of the context", err)
	}
	waiting := make(chan func())
	go func() {
		unlock, err := m.Lock(context.Background(), "a")
		if err != nil {
			t.Error(err)
		}
		waiting <- unlock
	}()
	unlockA()
	(<-waiting)()
	unlockB()
	if len(m.keys) != 0 {
		t.Errorf("entries are left: %v", m.keys)
	}
}
