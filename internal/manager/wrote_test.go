package manager

import (
	"testing"
	"time"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

func at(version string) *v1.Provider {
	p := &v1.Provider{}
	p.UID, p.ResourceVersion = "one", version
	return p
}

// What was watched before the last status that was written is not looked at.
func TestOwnWrites(t *testing.T) {
	now := time.Now()
	w := ownWrites{now: func() time.Time { return now }}
	if w.behind(at("7")) {
		t.Error("nothing was written, and something is behind")
	}
	w.wrote(at("9"))
	for version, want := range map[string]bool{"8": true, "7": true} {
		if w.behind(at(version)) != want {
			t.Errorf("version %s is behind: %v, want %v", version, !want, want)
		}
	}
	// Numbers, and not text.
	w.wrote(at("10"))
	if !w.behind(at("9")) {
		t.Error("9 is not behind 10")
	}
	if w.behind(at("11")) || w.behind(at("9")) {
		t.Error("it was seen, and is still waited for")
	}
	if len(w.last) != 0 {
		t.Errorf("what was seen is remembered: %v", w.last)
	}
	// A server that was brought back from a backup counts from an earlier number.
	w.wrote(at("1000"))
	now = now.Add(behindLimit)
	if w.behind(at("12")) {
		t.Error("it is waited for without an end")
	}
	// Nobody promises numbers.
	w.wrote(at("abc"))
	w.wrote(at("20"))
	if w.behind(at("abc")) {
		t.Error("a version that is no number is behind one")
	}
}
