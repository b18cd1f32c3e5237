package bootstrap_test

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// dependent returns a Configuration that depends on a package of each kind, at a version or
// above, and publishes these packages at that version.
func (s *testEnv) dependent(t *testing.T, name, needed, version string) v1.Package {
	t.Helper()
	text := fmt.Sprintf(
		"apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata:\n  name: %s\nspec:\n  dependsOn:\n", name,
	)
	for _, kind := range v1.PackageKinds() {
		of := needed + "-" + strings.ToLower(kind)
		ref := s.Push(t, "bootstrap/"+of, version, stream(kind, of+"-"+strings.ReplaceAll(version, ".", "-")))
		text += fmt.Sprintf(
			"  - %s: %s\n    version: \">=%s\"\n", strings.ToLower(kind), strings.TrimSuffix(ref, ":"+version), version,
		)
	}
	return env.NewPackage(v1.ConfigurationKind, name, s.Push(t, "bootstrap/"+name, "v1.0.0", text+"---\n"+xrd(name, "one")))
}

// needsKind installs a package that requires a kind of a Provider of everything. The manager records the Provider.
func (s *testEnv) needsKind(t *testing.T) {
	t.Helper()
	text := "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata:\n  name: needs-kind\nspec:\n  dependsOn:\n  - crd: kof10s.bootstrap.example.org/v1\n"
	p := env.NewPackage(v1.ConfigurationKind, "needs-kind", s.Push(t, "bootstrap/needs-kind", "v1.0.0", text))
	s.EnsureCreated(t, p)
	s.WaitReady(t, p)
	if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil ||
		!strings.Contains(p.GetAnnotations()[graph.AnnotationKindProviders], "bootstrap/few-provider") {
		t.Errorf("the annotations are %v (%v)", p.GetAnnotations(), err)
	}
}

// deleteAll deletes packages, which orphans their dependencies.
func (s *testEnv) deleteAll(t *testing.T, packages ...v1.Package) {
	t.Helper()
	for _, p := range packages {
		if err := s.Client.Delete(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
}

// waitOrphansRemoved waits until every auto-installed package is deleted.
func (s *testEnv) waitOrphansRemoved(t *testing.T) {
	t.Helper()
	wait.Until(t, env.Limit, "no auto-installed package is left", func() (string, bool) {
		var left []string
		for _, kind := range v1.PackageKinds() {
			list := v1.NewPackageList(kind)
			if err := s.Client.List(t.Context(), list, client.MatchingLabels{graph.LabelAutoInstalled: "true"}); err != nil {
				return err.Error(), false
			}
			for _, p := range list.Packages() {
				left = append(left, p.GetName())
			}
		}
		return fmt.Sprint(left), len(left) == 0
	})
}
