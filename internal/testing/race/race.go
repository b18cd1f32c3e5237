// Package race skips tests that prove nothing under the race detector.
package race

import "testing"

// SkipSequential skips a test that starts no goroutines when the race detector is enabled. Such a test has no races to
// detect, and takes up to twenty times as long there.
func SkipSequential(t testing.TB) {
	t.Helper()
	if enabled {
		t.Skip("the test starts no goroutines, so the race detector has nothing to detect")
	}
}
