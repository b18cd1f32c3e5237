package settings

import (
	"errors"
	"flag"
	"io"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/controlplane/internal/report"
)

func TestParse(t *testing.T) {
	tests := map[string]struct {
		args []string
		want Settings
	}{
		"defaults": {
			[]string{"--data-dir", "/d"},
			Settings{DataDir: "/d", Address: "127.0.0.1"},
		},
		"everything": {
			[]string{"--data-dir=/d", "--address=::1", "--port=16443", "--throwaway", "--crd-openapi", "--stay", "--v=2"},
			Settings{DataDir: "/d", Address: "::1", Port: 16443, Throwaway: true, CRDOpenAPI: true, Stay: true, Verbosity: 2},
		},
		"version needs no directory": {
			[]string{"--version"},
			Settings{Address: "127.0.0.1", Version: true},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(test.args, io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	tests := map[string]struct {
		args []string
		word string
	}{
		"no directory":      {nil, "--data-dir"},
		"unknown flag":      {[]string{"--data-dir=/d", "--nonsense"}, "nonsense"},
		"argument":          {[]string{"--data-dir=/d", "more"}, "more"},
		"host name":         {[]string{"--data-dir=/d", "--address=localhost"}, "localhost"},
		"negative port":     {[]string{"--data-dir=/d", "--port=-1"}, "-1"},
		"port out of range": {[]string{"--data-dir=/d", "--port=65536"}, "65536"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(test.args, io.Discard)
			var f *report.Failure
			if !errors.As(err, &f) || f.Code != report.Usage {
				t.Fatalf("got %v, want a failure of the code Usage", err)
			}
			if !strings.Contains(f.Text, test.word) {
				t.Errorf("%q does not name %q", f.Text, test.word)
			}
		})
	}
}

func TestHelp(t *testing.T) {
	var help strings.Builder
	if _, err := Parse([]string{"--help"}, &help); !errors.Is(err, flag.ErrHelp) {
		t.Fatalf("got %v, want flag.ErrHelp", err)
	}
	for _, word := range []string{"Usage:", "-data-dir", "-crd-openapi", "kubectl explain"} {
		if !strings.Contains(help.String(), word) {
			t.Errorf("the help does not mention %s", word)
		}
	}
}
