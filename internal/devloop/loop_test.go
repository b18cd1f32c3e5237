package devloop

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// run runs a loop that sees one text at each look, and returns the deployed texts and the reported failures. The
// deployment of a slow text lasts until its context ends.
func run(t *testing.T, looks []string, broken map[string]error, slow string) (deployed, failures []string) {
	t.Helper()
	i := 0
	synctest.Test(t, func(t *testing.T) {
		Loop{
			Snapshot: func() (string, error) {
				if looks[i] == "" {
					return "", errors.New("no folder")
				}
				return looks[i], nil
			},
			Deploy: func(ctx context.Context) error {
				deployed = append(deployed, looks[i])
				if looks[i] == slow {
					<-ctx.Done()
					return errors.New("interrupted")
				}
				return broken[looks[i]]
			},
			Pause: func(context.Context) error {
				synctest.Wait()
				if i++; i == len(looks) {
					return context.Canceled
				}
				return nil
			},
			Failed: func(err error) { failures = append(failures, err.Error()) },
		}.Run(t.Context())
	})
	return deployed, failures
}

func TestContentIsDeployedOnceItDoesNotChange(t *testing.T) {
	for name, c := range map[string]struct {
		looks, deployed, failures []string
		broken                    map[string]error
		slow                      string
	}{
		"no change":                    {looks: []string{"a", "a", "a"}, deployed: []string{"a"}},
		"files that are being written": {looks: []string{"a", "a", "b", "c", "d", "d"}, deployed: []string{"a", "d"}},
		"back":                         {looks: []string{"a", "a", "b", "b", "a", "a"}, deployed: []string{"a", "b", "a"}},
		"a failure waits for a change": {
			looks: []string{"a", "a", "a", "b", "b"}, broken: map[string]error{"a": errors.New("no")},
			deployed: []string{"a", "b"}, failures: []string{"no"},
		},
		"a missing folder": {
			looks: []string{"a", "a", "", "", "b", "b"}, deployed: []string{"a", "b"}, failures: []string{"no folder"},
		},
		"the same folder that is back": {
			looks: []string{"a", "a", "", "a", "a"}, deployed: []string{"a", "a"}, failures: []string{"no folder"},
		},
		"a folder that is back":    {looks: []string{"", "a", "a"}, deployed: []string{"a"}, failures: []string{"no folder"}},
		"a change in a deployment": {looks: []string{"a", "a", "a", "b", "b", "b"}, slow: "a", deployed: []string{"a", "b"}},
		"the end in a deployment":  {looks: []string{"a", "a", "a"}, slow: "a", deployed: []string{"a"}},
	} {
		deployed, failures := run(t, c.looks, c.broken, c.slow)
		if diff := cmp.Diff(c.deployed, deployed) + cmp.Diff(c.failures, failures); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestInterruptedDeploymentIsNoFailure(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	Loop{
		Snapshot: func() (string, error) { return "a", nil },
		Deploy:   func(context.Context) error { cancel(); return ctx.Err() },
		Pause:    func(ctx context.Context) error { return ctx.Err() },
		Failed:   func(err error) { t.Error(err) },
	}.Run(ctx)
}

func TestSnapshotChangesWithTheFilesOfAPackage(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, at int64) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Unix(at, 0), time.Unix(at, 0)); err != nil {
			t.Fatal(err)
		}
	}
	snapshot := func() string {
		t.Helper()
		s, err := Snapshot([]string{dir})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	write("crossplane.yaml", "a", 1)
	first := snapshot()
	for _, name := range []string{".git/index", "boats.xpkg", "node_modules/x.js", "crds/.swp", "dev.log"} {
		write(name, "x", 1)
	}
	if snapshot() != first {
		t.Error("an ignored file changes the snapshot")
	}
	seen := map[string]bool{first: true}
	for _, change := range []func(){
		func() {
			write("crds/a.yaml", "a", 1)
		}, func() { write("crossplane.yaml", "ab", 1) }, func() { write("crossplane.yaml", "ac", 2) },
		func() { _ = os.Remove(filepath.Join(dir, "crds", "a.yaml")) },
	} {
		change()
		if s := snapshot(); seen[s] {
			t.Error("a change does not change the snapshot")
		} else {
			seen[s] = true
		}
	}
	if _, err := Snapshot([]string{filepath.Join(dir, "missing")}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
