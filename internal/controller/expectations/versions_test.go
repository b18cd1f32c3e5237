package expectations

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

// An object that was read before its last write is behind, until it was read after it.
func TestAnObjectIsBehindUntilItsLastWriteIsRead(t *testing.T) {
	now := time.Now()
	v := Versions{Now: func() time.Time { return now }}
	if v.IsBehind(at("7")) {
		t.Error("nothing was written, and an object is behind")
	}
	v.Wrote(at("9"))
	for version, want := range map[string]bool{"8": true, "7": true} {
		if v.IsBehind(at(version)) != want {
			t.Errorf("version %s is behind: %v, want %v", version, !want, want)
		}
	}
	// Versions are compared as numbers and not as text.
	v.Wrote(at("10"))
	if !v.IsBehind(at("9")) {
		t.Error("9 is not behind 10")
	}
	if v.IsBehind(at("11")) || v.IsBehind(at("9")) {
		t.Error("the write was read, and is still expected")
	}
	if n := v.written.Len(); n != 0 {
		t.Errorf("%d writes that were read are kept", n)
	}
	// An API server that was restored from a backup counts from an earlier number.
	v.Wrote(at("1000"))
	now = now.Add(limit)
	if v.IsBehind(at("12")) {
		t.Error("the write is expected forever")
	}
	// Versions need not be numbers.
	v.Wrote(at("abc"))
	v.Wrote(at("20"))
	if v.IsBehind(at("abc")) {
		t.Error("a version that is no number is behind")
	}
}
