package xpkg

import (
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

func TestPolicies(t *testing.T) {
	for name, c := range map[string]struct {
		policy Policy
		code   errcode.Code
		want   Severity
	}{
		"zero is install":            {Policy{}, ErrInvalidMetaName, Warning},
		"install":                    {PolicyInstall(), ErrInvalidMetaName, Warning},
		"build":                      {PolicyBuild(), ErrInvalidMetaName, Error},
		"what is not in the table":   {PolicyInstall(), ErrManyMetas, Error},
		"strict":                     {PolicyBuild().Strict(), ErrKindAlias, Error},
		"strict leaves off":          {PolicyInstall().Strict(), ErrTextOnSeparator, Off},
		"lenient":                    {PolicyInstall().Lenient(), ErrObjectNotAllowed, Warning},
		"lenient about one thing":    {PolicyInstall().Lenient(), ErrUnknownKind, Error},
		"own":                        {PolicyInstall().With(ErrKindAlias, Off), ErrKindAlias, Off},
		"own wins over the table":    {PolicyInstall().With(ErrNoMeta, Warning), ErrNoMeta, Warning},
		"strict wins over own":       {PolicyInstall().With(ErrNoMeta, Warning).Strict(), ErrNoMeta, Error},
		"own does not change others": {PolicyInstall().With(ErrNoMeta, Warning), ErrManyMetas, Error},
	} {
		if got := c.policy.Severity(c.code); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

func TestWithDoesNotChangeTheOriginal(t *testing.T) {
	a := PolicyInstall().With(ErrNoMeta, Off)
	_ = a.With(ErrNoMeta, Error)
	if a.Severity(ErrNoMeta) != Off {
		t.Error("a policy was changed behind its back")
	}
}

// TestPackageIsPure proves that no file of the package imports a client, the
// network, the operating system or a clock other than for parsing dates.
func TestPackageIsPure(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), e.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range file.Imports {
			path, _ := strconv.Unquote(i.Path.Value)
			for _, bad := range []string{
				"os", "net", "net/http", "math/rand", "math/rand/v2", "crypto/rand", "k8s.io/client-go", "k8s.io/kubernetes",
				"k8s.io/apiserver", "sigs.k8s.io/controller-runtime", "github.com/google/go-containerregistry",
			} {
				if path == bad || strings.Contains(bad, ".") && strings.HasPrefix(path, bad+"/") {
					t.Errorf("%s imports %s", e.Name(), path)
				}
			}
		}
		if text, _ := os.ReadFile(e.Name()); strings.Contains(string(text), "time.Now") {
			t.Errorf("%s reads the clock", e.Name())
		}
	}
}
