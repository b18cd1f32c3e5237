package xpkg

import (
	"testing"
)

func TestEachLimitHasAFlag(t *testing.T) {
	var l Limits
	seen := map[string]bool{}
	for _, f := range l.Fields() {
		if seen[f.Name] || f.Usage == "" || f.Default <= 0 || *f.Value != 0 {
			t.Errorf("field %+v", f)
		}
		seen[f.Name] = true
		*f.Value = 1
	}
	if l != (Limits{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}) {
		t.Errorf("a limit has no flag: %+v", l)
	}
}
