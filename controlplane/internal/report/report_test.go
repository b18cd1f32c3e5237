package report

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestReadyLine(t *testing.T) {
	var out strings.Builder
	err := WriteReady(&out, Ready{
		Server: "https://127.0.0.1:16443", Kubeconfig: "/d/kubeconfig", Kubernetes: "v1.37.1", PID: 7,
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"server":"https://127.0.0.1:16443","kubeconfig":"/d/kubeconfig","kubernetes":"v1.37.1","pid":7}` + "\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestHealthyLine(t *testing.T) {
	var out strings.Builder
	if err := WriteHealthy(&out); err != nil || out.String() != `{"healthy":true}`+"\n" {
		t.Errorf("got %q, %v", out.String(), err)
	}
}

func TestErrorLine(t *testing.T) {
	tests := map[string]struct {
		err  error
		want string
	}{
		"failure": {
			Fail(PortInUse, errors.New("address already in use"), "cannot listen on %s", "127.0.0.1:1"),
			`{"error":{"code":"PortInUse","message":"cannot listen on 127.0.0.1:1: address already in use"}}`,
		},
		"wrapped failure keeps its code": {
			fmt.Errorf("outside: %w", Fail(DataDirInUse, nil, "held by 7")),
			`{"error":{"code":"DataDirInUse","message":"held by 7"}}`,
		},
		"plain error": {
			errors.New("etcd gave up"),
			`{"error":{"code":"StartFailed","message":"etcd gave up"}}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if err := WriteError(&out, test.err); err != nil {
				t.Fatal(err)
			}
			if got := strings.TrimSuffix(out.String(), "\n"); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
