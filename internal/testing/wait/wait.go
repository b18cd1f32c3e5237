// Package wait waits for conditions in tests, in place of sleeps.
package wait

import (
	"testing"
	"time"
)

// interval is the pause between two checks of a condition.
const interval = 50 * time.Millisecond

// Until waits until the condition holds. After the limit it fails the test with the state that
// the condition returned last.
func Until(t testing.TB, limit time.Duration, what string, condition func() (seen string, ok bool)) {
	t.Helper()
	deadline := time.Now().Add(limit)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		seen, ok := condition()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s passed before %s; last state: %s", limit, what, seen)
		}
		<-tick.C
	}
}
