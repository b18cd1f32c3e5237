package child

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// sayVariable makes this test binary a control plane that prints the value, and then waits
// for the end of its input.
const sayVariable = "XPKG_TEST_SAY"

func TestMain(m *testing.M) {
	if say, ok := os.LookupEnv(sayVariable); ok {
		fmt.Fprintf(os.Stderr, "arguments: %s\n", strings.Join(os.Args[1:], " "))
		fmt.Print(say)
		if strings.HasSuffix(say, "\n") {
			_, _ = io.Copy(io.Discard, os.Stdin)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestStartAndStop(t *testing.T) {
	t.Setenv(
		sayVariable, `{"server":"https://127.0.0.1:1","kubeconfig":"/k","kubernetes":"v1.37.1","pid":7,"later":"field"}`+"\n",
	)
	var log strings.Builder
	p, err := Start(t.Context(), Options{
		Program: os.Args[0], DataDir: "/d", Port: 9, Throwaway: true, CRDOpenAPI: true, Log: &log,
	})
	if err != nil {
		t.Fatal(err)
	}
	want := Ready{Server: "https://127.0.0.1:1", Kubeconfig: "/k", Kubernetes: "v1.37.1", PID: 7}
	if diff := cmp.Diff(want, p.Ready); diff != "" {
		t.Error(diff)
	}
	select {
	case <-p.Done():
		t.Error("it ended by itself")
	default:
	}
	for range 2 {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	}
	if err := p.Err(); err != nil {
		t.Error(err)
	}
	if got := log.String(); got != "arguments: --data-dir=/d --port=9 --throwaway --crd-openapi\n" {
		t.Errorf("log: %q", got)
	}
}

func TestHealthy(t *testing.T) {
	serving := `{"server":"https://127.0.0.1:1","kubeconfig":"/k","kubernetes":"v1.37.1","pid":7}` + "\n"
	for lines, want := range map[string]bool{
		serving + `{"healthy":true}` + "\n":  true,
		serving + `{"healthy":false}` + "\n": false,
		serving + "healthy\n":                false,
	} {
		t.Setenv(sayVariable, lines)
		p, err := Start(t.Context(), Options{Program: os.Args[0], DataDir: "/d", Log: io.Discard})
		if err != nil {
			t.Fatal(err)
		}
		if want {
			<-p.Healthy()
		}
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
		select {
		case <-p.Healthy():
			if !want {
				t.Errorf("%q: the control plane is healthy", lines)
			}
		default:
		}
	}
}

func TestStartFails(t *testing.T) {
	tests := map[string]struct {
		say  string
		want errcode.Code
		word string
	}{
		"port": {`{"error":{"code":"PortInUse","message":"port 1 is used"}}` +
			"\n", ErrPortInUse, "port 1 is used"},
		"directory": {`{"error":{"code":"DataDirInUse","message":"held by 7"}}` + "\n", ErrDataDirInUse, "held by 7"},
		"unusable": {`{"error":{"code":"DataDirUnusable","message":"read-only"}}` +
			"\n", ErrDataDirUnusable, "read-only"},
		"other code":      {`{"error":{"code":"StartFailed","message":"etcd gave up"}}` + "\n", ErrFailed, "etcd gave up"},
		"nothing":         {"", ErrFailed, "before it was ready"},
		"not JSON":        {"hello\n", ErrFailed, "wrote an invalid report"},
		"half a line":     {`{"server":"https`, ErrFailed, "wrote an invalid report"},
		"a flood, no \\n": {strings.Repeat("x", 1<<16), ErrFailed, "wrote an invalid report"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv(sayVariable, test.say)
			_, err := Start(t.Context(), Options{Program: os.Args[0], Log: io.Discard})
			if !errors.Is(err, test.want) {
				t.Fatalf("got %v, want %s", err, test.want.Name)
			}
			if !strings.Contains(err.Error(), test.word) {
				t.Errorf("%q does not say %q", err, test.word)
			}
		})
	}
}

func TestStartInterrupted(t *testing.T) {
	t.Setenv(sayVariable, "\n")
	reason := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	_, err := Start(ctx, Options{Program: os.Args[0], Log: io.Discard})
	// The line may win the race against the context; nothing runs in either case.
	if !errors.Is(err, reason) && !errors.Is(err, ErrFailed) {
		t.Errorf("got %v", err)
	}
}

func TestFind(t *testing.T) {
	empty, full := t.TempDir(), t.TempDir()
	program := filepath.Join(full, Name())
	if err := os.WriteFile(program, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	none := func(string) string { return "" }
	if got, err := Find(none, empty, full); err != nil || got != program {
		t.Errorf("got %s, %v, want %s", got, err, program)
	}
	if _, err := Find(none, empty); !errors.Is(err, ErrMissing) {
		t.Errorf("got %v, want ControlPlaneMissing", err)
	}
	named := func(string) string { return filepath.Join(empty, "other") }
	if _, err := Find(named, full); !errors.Is(err, ErrMissing) {
		t.Errorf("a wrong name must not be ignored: got %v", err)
	}
}
