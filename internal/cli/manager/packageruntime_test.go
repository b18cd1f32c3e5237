package manager

import (
	"testing"

	programs "github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

func TestParseRuntimeChoice(t *testing.T) {
	const local, all = "Use Process, External or None, or pairs such as Provider=External;Function/greet=None.",
		"Use Deployment, Process, External or None, or pairs such as Provider=External;Function/greet=None."
	for _, c := range []struct {
		flag    string
		allowed []programs.Name
		want    string
		do      string
	}{
		{"", LocalRuntimes, "External", ""},
		{"None", LocalRuntimes, "None", ""},
		{"Provider=None", LocalRuntimes, "Function=External;Provider=None", ""},
		{"Deployment", LocalRuntimes, "", local},
		{"Provider=Deployment", LocalRuntimes, "", local},
		{"Provider/boats=Deployment", LocalRuntimes, "", local},
		{"Container", LocalRuntimes, "", local},
		{"Deployment", Runtimes, "Deployment", ""},
		{"Container", Runtimes, "", all},
	} {
		choice, err := ParseRuntimeChoice(c.flag, programs.External, c.allowed)
		switch {
		case c.do == "" && (err != nil || choice.String() != c.want):
			t.Errorf("%q is %q, %v; want %q", c.flag, choice, err, c.want)
		case c.do != "" && (err == nil || errcode.From(err).Do != c.do):
			t.Errorf("%q is %q, %v; want the advice %q", c.flag, choice, err, c.do)
		}
	}
}
