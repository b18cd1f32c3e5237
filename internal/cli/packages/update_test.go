package packages

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/operation"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

func TestUpdateTo(t *testing.T) {
	const digest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	for _, tc := range []struct{ present, to, want string }{
		{"registry.example.com/a/b:v1", "v2", "registry.example.com/a/b:v2"},
		{"registry.example.com/a/b:v1@" + digest, "v2", "registry.example.com/a/b:v2"},
		{"registry.example.com:5000/a/b@" + digest, "v2", "registry.example.com:5000/a/b:v2"},
		{"registry.example.com/a/b:v1", digest, "registry.example.com/a/b@" + digest},
		{"registry.example.com/a/b:v1", "v2@" + digest, "registry.example.com/a/b:v2@" + digest},
		{"registry.example.com/a/b:v1", "mirror.example.com/a/b:v1", "mirror.example.com/a/b:v1"},
		{"registry.example.com/a/b:v1", "a/b:v2", "docker.io/a/b:v2"},
		{"boats", "registry.example.com/a/b:v1", "registry.example.com/a/b:v1"},
		{"boats", "boats-v2", "boats-v2"},
		{"registry.example.com/a/b:v1", "not a tag", ""},
		{"registry.example.com/a/b:v1", "sha256:aa", ""},
		{"registry.example.com/a/b:v1", "b:v2", ""},
	} {
		got, err := updateTo(tc.present, tc.to)
		switch {
		case (err != nil) != (tc.want == ""):
			t.Errorf("%s to %s: %v", tc.present, tc.to, err)
		case err == nil && got != tc.want:
			t.Errorf("%s to %s: got %s, want %s", tc.present, tc.to, got, tc.want)
		}
	}
}

// A name with a tag is not appended to the repository.
func TestUpdateToANameWithATag(t *testing.T) {
	_, err := updateTo("registry.example.com/acme/boats:v1", "boats:v2")
	if !errors.Is(err, terminal.ErrUsage) || !strings.Contains(errcode.From(err).Do, "`xpkg update boats@v2`") {
		t.Errorf("%v", err)
	}
}

// The kind, the name and the reference in another order name the correct command.
func TestInstallNamesTheOrderOfReferenceAndName(t *testing.T) {
	args := installArgs{Kind: v1.ProviderKind, Ref: "boats", Name: "ghcr.io/acme/boats:v1.0.0"}
	_, err := args.object()
	if !errors.Is(err, terminal.ErrUsage) ||
		!strings.Contains(errcode.From(err).Do, "`xpkg install provider ghcr.io/acme/boats:v1.0.0 boats`") {
		t.Errorf("got %v (%s)", err, errcode.From(err).Do)
	}
}

// A package in the package cache is installed by its name if no registry may be asked.
func TestInstallFromTheCache(t *testing.T) {
	for _, tc := range []struct{ ref, policy, image, name string }{
		{"mycoolpkg", "Never", "mycoolpkg", "mycoolpkg"},
		{"mycoolpkg.xpkg", "Never", "mycoolpkg.xpkg", "mycoolpkg-xpkg"},
		{"registry.example.com/a/b:v1", "Never", "registry.example.com/a/b:v1", "a-b"},
		{"mycoolpkg", "IfNotPresent", "", ""},
		{"mycoolpkg", "", "", ""},
	} {
		c := installArgs{Kind: "Configuration", Ref: tc.ref, PackagePullPolicy: tc.policy}
		p, err := c.object()
		if (err != nil) != (tc.image == "") {
			t.Errorf("%s, %s: %v", tc.ref, tc.policy, err)
		}
		if err == nil && (p.PackageSpec().Package != tc.image || p.GetName() != tc.name) {
			t.Errorf("%s, %s: %s from %s", tc.ref, tc.policy, p.GetName(), p.PackageSpec().Package)
		}
	}
}

// The refusal of an update of all packages names the command that updates the others, without those that would be
// refused too.
func TestRefusalOfAnUpdateOfAllNamesTheOthers(t *testing.T) {
	conflict, invalid, network := apply.ErrRefused.New(nil, "refused"), xpkg.ErrInvalidMetaName.New(nil, "invalid"),
		remote.ErrRegistryUnavailable.New(nil, "down")
	for name, tc := range map[string]struct {
		others []string
		// refused are the errors of the packages, and moved is a dependency that moves with c.
		refused map[string]error
		moved   string
		want    string
	}{
		"others": {
			[]string{"a", "c"}, nil, "", " To update the other packages, run `xpkg update provider/a provider/c`.",
		},
		"one refused": {
			[]string{"a", "b", "c"}, map[string]error{"b": conflict}, "",
			" To update the other packages except provider/b, which would be refused too, run `xpkg update provider/a provider/c`.",
		},
		"two refused": {
			[]string{"a", "b", "c"}, map[string]error{"a": invalid, "c": conflict}, "",
			" To update the other packages except provider/a, provider/c, which would be refused too, run `xpkg update provider/b`.",
		},
		"all refused":        {[]string{"a", "b"}, map[string]error{"a": conflict, "b": conflict}, "", ""},
		"no others":          {nil, nil, "", ""},
		"no access":          {[]string{"a", "b"}, map[string]error{"b": network}, "", ""},
		"dependency refused": {[]string{"a", "c"}, map[string]error{"d": invalid}, "d", ""},
		"dependent with it too": {
			[]string{"a", "c"}, map[string]error{"c": conflict, "d": conflict}, "d",
			" To update the other packages except provider/c, which would be refused too, run `xpkg update provider/a`.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := review{others: func(_ *terminal.Env, names []string) ([]*operation.Step, error) {
				var steps []*operation.Step
				if slices.Contains(names, "provider/c") && tc.moved != "" {
					names = append(slices.Clone(names), "provider/"+tc.moved)
				}
				for _, name := range names {
					p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: strings.TrimPrefix(name, "provider/")}}
					steps = append(steps, &operation.Step{Live: p, Want: p})
				}
				return steps, nil
			}}
			plan := func(_ *terminal.Env, steps []*operation.Step) (refused []*operation.Step, err error) {
				for _, s := range steps {
					if why := tc.refused[s.Live.GetName()]; why != nil {
						refused, err = append(refused, s), why
					}
				}
				return refused, err
			}
			var names []string
			for _, name := range tc.others {
				names = append(names, "provider/"+name)
			}
			err := o.adviseOthers(
				&terminal.Env{Stderr: io.Discard}, apply.ErrRefused.New(nil, "x is refused").WithDo("Do."), names, plan,
			)
			if got := errcode.From(err).Do; got != "Do."+tc.want {
				t.Errorf("got %q, want %q", got, "Do."+tc.want)
			}
		})
	}
}

// The advice for a stale plan is the command that makes it again.
func TestPlanCommand(t *testing.T) {
	to := &planner.Version{Reference: "registry.example.com/a:v2"}
	for want, p := range map[string]*planner.Plan{
		"xpkg plan install provider registry.example.com/a:v2 a --out 'my plan.json'": {
			Operation: planner.Install, Package: planner.Package{Kind: "Provider", Name: "a", To: to},
		},
		"xpkg plan update provider/a registry.example.com/a:v2 --out 'my plan.json'": {
			Operation: planner.Update, Package: planner.Package{Kind: "Provider", Name: "a", To: to},
		},
		"xpkg plan uninstall function/a --out 'my plan.json'": {Operation: planner.Uninstall, Package: planner.Package{
			Kind: "Function", Name: "a",
		}},
	} {
		if got := planAgain(p, "my plan.json"); got != "Make the plan again with `"+want+"`, and review it." {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
