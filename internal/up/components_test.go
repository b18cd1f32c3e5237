package up

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xpkg-dev/xpkg/internal/up/datadir"

	"github.com/google/go-cmp/cmp"
)

func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		begin := time.Now()
		var starts []time.Duration
		var reported []string
		run := func(context.Context, Env) error {
			starts = append(starts, time.Since(begin))
			switch len(starts) {
			case 2:
				return nil
			case 5:
				time.Sleep(time.Minute) // longer than the limit: starts over
			case 7:
				cancel()
			}
			return errors.New("broken")
		}
		backoff{first: time.Second, limit: 4 * time.Second}.run(ctx, run, Env{}, time.Now, func(err error) {
			reported = append(reported, err.Error())
		})
		want := []time.Duration{0, 1, 3, 7, 11, 72, 74}
		for i := range want {
			want[i] *= time.Second
		}
		if diff := cmp.Diff(want, starts); diff != "" {
			t.Errorf("starts: %s", diff)
		}
		if len(reported) != 6 || reported[0] != "broken" || reported[1] != errEnded.Error() {
			t.Errorf("reported %q", reported)
		}
	})
}

func TestLastLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	missing, err := openLog(filepath.Dir(path), "log")
	if err := errors.Join(err, os.Remove(path)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { missing.Close() })
	if got := missing.lastLines(); got != "" {
		t.Errorf("missing file: %q", got)
	}
	long := strings.Repeat("x", tailLimit) + "\n"
	if err := os.WriteFile(path, []byte("old\n"+long+"1\n2\n3\n4\n5\n6\n7\n8\n9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := openLog(filepath.Dir(path), "log")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	if got := log.lastLines(); got != "" {
		t.Errorf("of a former start: %q", got)
	}
	log.start = 0
	if got, want := log.lastLines(), "2\n3\n4\n5\n6\n7\n8\n9"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	log.start = int64(len("old\n" + long + "1\n2\n3\n4\n5\n6\n7\n"))
	if got, want := log.lastLines(), "8\n9"; got != want {
		t.Errorf("from an offset: got %q, want %q", got, want)
	}
}

func TestOpenLogStartsAnew(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	for _, test := range []struct{ before, after int64 }{{0, 0}, {logLimit, logLimit}, {logLimit + 1, 0}} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, test.before); err != nil {
			t.Fatal(err)
		}
		f, err := openLog(dir, "log")
		if err != nil {
			t.Fatal(err)
		}
		if info, _ := f.Stat(); info.Size() != test.after {
			t.Errorf("%d bytes became %d, want %d", test.before, info.Size(), test.after)
		}
		f.Close()
	}
}

func FuzzState(f *testing.F) {
	f.Add([]byte(`{"pid":1,"server":"https://127.0.0.1:1"}`))
	f.Add([]byte(`{"pid":"1"}`))
	f.Add([]byte(`[`))
	f.Fuzz(func(t *testing.T, content []byte) {
		dir := t.TempDir()
		for _, name := range []string{datadir.StateName, "version.json", "up.pid", reportName} {
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, _ = readState(dir)
		_ = datadir.Check(dir)
		_ = readReport(filepath.Join(dir, reportName))
		if pid := datadir.RecordedPID(dir); pid < 0 {
			t.Errorf("process %d", pid)
		}
	})
}
