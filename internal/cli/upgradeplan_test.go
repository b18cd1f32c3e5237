package cli_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// prints fails unless the output of a command has lines that match the patterns.
func (e ended) prints(t *testing.T, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !regexp.MustCompile("(?m)" + line).MatchString(e.out + e.errors) {
			t.Errorf("it does not say %q:\n%s%s", line, e.out, e.errors)
		}
	}
}

// A plan contains the dependencies that the manager moves with a package, and the manager makes
// these changes. A plan that breaks other packages is refused without consent.
func TestPlanOfMoves(t *testing.T) {
	b := benchWith(t, func(o *controller.Options, source *fetch.Source) {
		o.Dependencies = &controller.Dependencies{Registry: source, Upgrades: graph.Upgrade}
	})
	leaf := b.registry + "/moves/leaf"
	for _, tag := range []string{"v1.0.0", "v2.0.0", "v2.1.0"} {
		b.push(t, "moves/leaf", tag, "Kept")
	}
	b.pushDependent(t, "moves/root", "v2.0.0", leaf+" >=v2.0.0", "Kept")
	b.must(
		t, 0, "install", "provider", b.pushDependent(t, "moves/root", "v1.0.0", leaf+" <v2.0.0", "Kept"), "root", "--wait",
		"1m",
	)
	t.Cleanup(func() {
		for _, name := range []string{"root", "moves-leaf"} {
			b.run(t, b.kubeconfig, "uninstall", "provider", name, "--yes", "--on-delete", "cascade=100", "--wait", "1m")
		}
	})
	b.locked(t, "moves-leaf", "root")

	file := filepath.Join(t.TempDir(), "plan.json")
	plan := b.must(t, 2, "plan", "update", "root", "v2.0.0", "--out", file)
	plan.prints(
		t, "^moved with it:$", "^  provider/moves-leaf  v1.0.0 → v2.0.0  for .*/moves/root$",
		"Objects are changed when these have arrived: .*/moves/leaf >=v2.0.0",
	)
	b.must(t, 2, "plan", "update", "root", "v2.0.0", "-o", "json").
		prints(t, `"name": "moves-leaf"`, `"from": ".*/moves/leaf:v1.0.0"`)
	b.must(t, 9, "plan", "update", "root", "v2.0.0", "--dependency-upgrades", "None").
		prints(t, "^  incompatible +.*moves/leaf >=v2.0.0 +installed is ",
			"Objects are changed only when these are installed",
			"^error: DependencyVersion: provider/root would not become healthy: ",
			"Update them together with `xpkg update provider/root@v2.0.0 provider/moves-leaf@v2.0.0`\\..* To continue anyway, use --yes with `xpkg update`\\.$")
	b.must(
		t, 9, "plan", "update", "root", "v2.0.0", "--dependency-upgrades", "None", "--out",
		filepath.Join(t.TempDir(), "none.json"),
	).prints(t,
		"^saved as .*none.json; apply it with `xpkg apply .*none.json --yes`$",
		" To continue anyway, run `xpkg apply .*none.json --yes`\\.$")
	b.must(t, 9, "update", "root", "v2.0.0", "--dependency-upgrades", "None").
		prints(t, "^error: DependencyVersion: ", " To continue anyway, use --yes\\.$")
	for _, flags := range [][]string{{"--dry-run"}, {"--dry-run", "--yes"}} {
		b.must(t, 9, append([]string{"update", "root", "v2.0.0", "--dependency-upgrades", "None"}, flags...)...).prints(t,
			"^error: DependencyVersion: ", " To continue anyway, run the command with --yes and without --dry-run\\.$")
	}

	t.Run("what moves must be as it was", func(t *testing.T) {
		b.patch(t, b.provider(t, "moves-leaf"), `{"spec":{"package":"`+leaf+`:v2.1.0"}}`)
		e := b.must(t, 9, "apply", file)
		e.prints(
			t, "^changed since the plan: the installed provider/moves-leaf was .*:v1.0.0 .* and is .*:v2.1.0",
			"^error: PlanMoved: ",
		)
		b.patch(t, b.provider(t, "moves-leaf"), `{"spec":{"package":"`+leaf+`:v1.0.0"}}`)
		b.locked(t, "moves-leaf", "root")
	})
	b.must(t, 2, "plan", "update", "root", "v2.0.0", "--out", file)
	b.must(t, 0, "apply", file, "--wait", "1m")
	if is := b.provider(t, "moves-leaf").Spec.Package; is != leaf+":v2.0.0" {
		t.Errorf("the leaf is %s", is)
	}
	b.locked(t, "moves-leaf", "root")

	t.Run("an update that breaks another package", func(t *testing.T) {
		b.must(t, 2, "plan", "update", "moves-leaf", "v2.1.0")
		breaks := []string{
			"^breaks:$", "^  provider/root  needs .*/moves/leaf >=v2.0.0  would be at v1.0.0$", "^error: DependentsBroken: ",
		}
		b.must(t, 9, "plan", "update", "moves-leaf", "v1.0.0", "--out", file).prints(t, breaks...)
		b.must(t, 9, "update", "moves-leaf", "v1.0.0").prints(t, breaks...)
		b.must(t, 9, "apply", file).prints(t, breaks[2])
		if is := b.provider(t, "moves-leaf").Spec.Package; is != leaf+":v2.0.0" {
			t.Errorf("the leaf is %s", is)
		}
		// With consent, the manager installs the missing dependency again.
		b.must(t, 0, "apply", file, "--yes")
		b.comesBack(t, "moves-leaf", "")
	})
	t.Run("an uninstall that breaks another package", func(t *testing.T) {
		breaks := []string{
			"^  provider/root  needs .*/moves/leaf >=v2.0.0  would not be installed$",
			"The package manager installs it again: provider/root needs .*", "^error: DependentsBroken: ",
		}
		b.must(t, 9, "plan", "uninstall", "provider", "moves-leaf").prints(t, breaks...)
		b.must(t, 9, "uninstall", "provider", "moves-leaf").prints(t, breaks[2])
		was := b.provider(t, "moves-leaf").UID
		b.must(t, 0, "uninstall", "provider", "moves-leaf", "--yes")
		b.comesBack(t, "moves-leaf", string(was))
		b.must(t, 2, "plan", "uninstall", "provider", "root")
	})
}

// locked waits until the Lock speaks of packages as they are.
func (b bench) locked(t *testing.T, names ...string) {
	t.Helper()
	wait.Until(t, time.Minute, "the Lock is written", func() (string, bool) {
		lock := &v1beta1.Lock{}
		if err := b.client.Get(t.Context(), client.ObjectKey{Name: v1beta1.LockName}, lock); err != nil {
			return err.Error(), false
		}
		for _, name := range names {
			p := b.provider(t, name)
			if _, known := graph.LockEntry(p, lock.Packages); !known || p.Status.Activation == nil ||
				!p.Status.Activation.Healthy || p.Status.ObservedGeneration != p.Generation {
				return name, false
			}
		}
		return "", true
	})
}

// comesBack waits until a required package satisfies its dependents, as a new object.
func (b bench) comesBack(t *testing.T, name, not string) {
	t.Helper()
	wait.Until(t, time.Minute, name+" is what others need", func() (string, bool) {
		p := &v1.Provider{}
		err := b.client.Get(t.Context(), client.ObjectKey{Name: name}, p)
		return p.Spec.Package, err == nil && string(p.UID) != not && strings.Contains(p.Spec.Package, ":v2.")
	})
	b.locked(t, name, "root")
}
