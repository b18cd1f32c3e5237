package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/xpkg-dev/xpkg/internal/testing/race"
)

// TestPackageNameIsAcceptedInEveryForm checks that KIND NAME means KIND/NAME for every command that takes an
// installed package, and that other arguments stay as they are.
func TestPackageNameIsAcceptedInEveryForm(t *testing.T) {
	race.SkipSequential(t)
	for line, want := range map[string]string{
		"uninstall provider hello":                         "uninstall provider/hello",
		"uninstall providers hello --yes":                  "uninstall providers/hello --yes",
		"uninstall provider.pkg hello":                     "uninstall provider.pkg/hello",
		"uninstall provider.pkg.crossplane.io hello":       "uninstall provider.pkg.crossplane.io/hello",
		"uninstall --wait 2m provider hello":               "uninstall --wait 2m provider/hello",
		"uninstall -yw 2m function hello":                  "uninstall -yw 2m function/hello",
		"uninstall --kubeconfig provider provider hello":   "uninstall --kubeconfig provider provider/hello",
		"uninstall --kubeconfig=x Configuration hello":     "uninstall --kubeconfig=x Configuration/hello",
		"uninstall provider/hello":                         "uninstall provider/hello",
		"uninstall provider":                               "uninstall provider",
		"uninstall hello":                                  "uninstall hello",
		"uninstall provider --yes":                         "uninstall provider --yes",
		"uninstall provider.example.org hello":             "uninstall provider.example.org hello",
		"plan uninstall function greet -o json":            "plan uninstall function/greet -o json",
		"update provider hello v2.0.0":                     "update provider/hello v2.0.0",
		"update provider ghcr.io/acme/boats:v2 sailing":    "update provider/ghcr.io/acme/boats:v2 sailing",
		"update hello provider boats function greet":       "update hello provider/boats function/greet",
		"upgrade hello v2.0.0":                             "upgrade hello v2.0.0",
		"plan update configuration hello v2.0.0":           "plan update configuration/hello v2.0.0",
		"approve function greet":                           "approve function/greet",
		"logs provider hello -f":                           "logs provider/hello -f",
		"tree configuration hello":                         "tree configuration/hello",
		"why function greet":                               "why function/greet",
		"install provider ghcr.io/acme/boats:v1.0.0 boats": "install provider ghcr.io/acme/boats:v1.0.0 boats",
		"build provider -f package":                        "build provider -f package",
		"uninstall -- provider hello":                      "uninstall -- provider hello",
		"uninstall hello --yes -w 2m rafts -l a=b boats":   "uninstall hello rafts boats --yes -w 2m -l a=b",
		"uninstall --dry-run hello -y provider boats":      "uninstall --dry-run hello provider/boats -y",
		"uninstall provider -y hello":                      "uninstall provider/hello -y",
		"uninstall hello -y -- -boats":                     "uninstall hello -y -- -boats",
		"update hello -q v2.0.0 -y":                        "update hello v2.0.0 -q -y",
		"history hello -o json boats":                      "history hello -o json boats",
		"validate a.yaml --package b.xpkg c.yaml":          "validate a.yaml c.yaml --package b.xpkg",
		"list -o=json -l=team=red":                         "list -ojson -lteam=red",
		"uninstall -yw=2m function hello":                  "uninstall -yw2m function/hello",
		"uninstall -w2m function hello":                    "uninstall -w2m function/hello",
		"list -o= -- -o=json":                              "list -o= -- -o=json",
		"build -f=package -o=out=1.xpkg":                   "build -fpackage -oout=1.xpkg",
	} {
		parser, err := kong.New(grammarOf(strings.Fields(line)), kong.Name("xpkg"))
		if err != nil {
			t.Fatal(err)
		}
		if got := normalize(parser.Model, strings.Fields(line)); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
}

// TestInstallNeedsNoKind checks that a reference without a kind before it is recognized, and that a misspelled kind is
// still reported as one.
func TestInstallNeedsNoKind(t *testing.T) {
	for line, want := range map[string]string{
		"install ghcr.io/acme/boats:v1.0.0":                    "install _ ghcr.io/acme/boats:v1.0.0",
		"install ghcr.io/acme/boats:v1.0.0 boats -w 2m":        "install _ ghcr.io/acme/boats:v1.0.0 boats -w 2m",
		"install --context provider acme/boats@sha256:ab":      "install --context provider _ acme/boats@sha256:ab",
		"plan install ghcr.io/acme/boats:v1.0.0 -o json":       "plan install _ ghcr.io/acme/boats:v1.0.0 -o json",
		"install provider ghcr.io/acme/boats:v1.0.0":           "install provider ghcr.io/acme/boats:v1.0.0",
		"install providr ghcr.io/acme/boats:v1.0.0":            "install providr ghcr.io/acme/boats:v1.0.0",
		"install --lock xpkg.lock":                             "install --lock xpkg.lock",
		"install configuration cached --package-pull-policy X": "install configuration cached --package-pull-policy X",
		"uninstall provider/hello":                             "uninstall provider/hello",
	} {
		parser, err := kong.New(grammarOf(strings.Fields(line)), kong.Name("xpkg"))
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Fields(strings.ReplaceAll(strings.Join(addKind(parser.Model, strings.Fields(line)), " "), "  ", " _ "))
		if !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
}
