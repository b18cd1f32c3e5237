package controller_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/yaml"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// dependencyEnv is a manager that installs dependencies, with a registry.
type dependencyEnv struct {
	*testEnv
	registry *registry
	// stop ends the manager.
	stop func()
	// unrelated has no relation to other packages, and must not change.
	unrelated *v1.Configuration
	before    string
}

func newDependencyEnv(t testing.TB, upgrades graph.Policy) *dependencyEnv {
	t.Helper()
	return startDependencyEnv(t, newEnv(t), controller.Dependencies{Upgrades: upgrades})
}

// startDependencyEnv returns a dependencyEnv for an environment whose manager does not run yet.
func startDependencyEnv(t testing.TB, s *testEnv, d controller.Dependencies) *dependencyEnv {
	t.Helper()
	w := &dependencyEnv{testEnv: s, registry: newRegistry(t)}
	w.options.Dependencies = &d
	w.stop = w.start(t)
	t.Cleanup(func() { w.deleteAll(t) })
	w.unrelated = newConfiguration("dep-stranger", w.push(t, "Configuration", "stranger:v1.0.0"))
	w.CreateTemporary(t, w.unrelated)
	w.WaitPackage(t, w.unrelated, "is healthy, and its activation is over", func() bool {
		return w.unrelated.GetCondition(v1.TypeHealthy).Status == corev1.ConditionTrue &&
			w.unrelated.Status.Activation != nil && w.unrelated.Status.Activation.Healthy
	})
	w.before = w.unrelatedState(t)
	return w
}

// deleteAll removes all packages, including auto-installed ones.
func (w *dependencyEnv) deleteAll(t testing.TB) {
	ctx := context.Background()
	wait.Until(t, limit, "no package is left", func() (string, bool) {
		left := 0
		for _, kind := range v1.PackageKinds() {
			list := v1.NewPackageList(kind)
			if err := w.Client.List(ctx, list); err != nil {
				return err.Error(), false
			}
			for _, p := range list.Packages() {
				left++
				w.CleanUp(t, p)
			}
		}
		return fmt.Sprint(left), left == 0
	})
}

// unrelatedState returns the complete state of the unrelated package and its revisions.
func (w *dependencyEnv) unrelatedState(t testing.TB) string {
	t.Helper()
	if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(w.unrelated), w.unrelated); err != nil {
		t.Fatal(err)
	}
	out, err := yaml.Marshal([]any{w.unrelated, w.Revisions(t, w.unrelated)})
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// assertUnchanged checks that the unrelated package has not changed.
func (w *dependencyEnv) assertUnchanged(t testing.TB) {
	t.Helper()
	if diff := gocmp.Diff(w.before, w.unrelatedState(t)); diff != "" {
		t.Errorf("the unrelated package has changed (-before +now):\n%s", diff)
	}
}

// push publishes a package of a kind at dep/NAME:TAG that needs others, each written as NAME or as
// NAME and a constraint. A dependency that begins with a question mark is optional.
func (w *dependencyEnv) push(t testing.TB, kind, name string, needs ...string) string {
	t.Helper()
	return w.pushWith(t, kind, name, "", needs...)
}

// pushWith is like push, with objects of the package.
func (w *dependencyEnv) pushWith(t testing.TB, kind, name, objects string, needs ...string) string {
	t.Helper()
	spec, optional := "", ""
	for _, need := range needs {
		pkg, constraint, _ := strings.Cut(need, " ")
		if name, ok := strings.CutPrefix(pkg, "?"); ok {
			optional += fmt.Sprintf("    - {provider: %q, version: %q}\n", w.repository(name), constraint)
			continue
		}
		if spec == "" {
			spec = "spec:\n  dependsOn:\n"
		}
		as := "provider"
		if at := strings.Index(pkg, "="); at > 0 {
			as, pkg = pkg[:at], pkg[at+1:]
		}
		spec += fmt.Sprintf("  - %s: %s\n    version: %q\n", as, w.repository(pkg), cmp.Or(constraint, ">=v0"))
	}
	short, _, _ := strings.Cut(name, ":")
	text := meta(kind, strings.ReplaceAll(short, "/", "-"), spec)
	if optional != "" {
		text = strings.Replace(text, "  annotations:\n", "  annotations:\n    "+xpkg.AnnotationOptional+": |\n  "+
			strings.ReplaceAll(optional, "\n    ", "\n      "), 1)
	}
	ref, _ := w.registry.push(t, "dep/"+name, text+objects)
	return ref
}

func (w *dependencyEnv) repository(name string) string { return w.registry.address + "/dep/" + name }

// config creates the Configuration dep-NAME.
func (w *dependencyEnv) config(t testing.TB, name, ref string) *v1.Configuration {
	t.Helper()
	p := newConfiguration("dep-"+name, ref)
	w.CreateTemporary(t, p)
	return p
}

// waitInstalled waits for an auto-installed package, and checks its version.
func (w *dependencyEnv) waitInstalled(t testing.TB, p v1.Package, version string) {
	t.Helper()
	w.WaitHealthy(t, p)
	if p.GetLabels()[graph.LabelAutoInstalled] != "true" || !strings.HasSuffix(p.PackageSpec().Package, ":"+version) {
		t.Errorf("%s is %s with the labels %v, want version %s", p.GetName(), p.PackageSpec().Package, p.GetLabels(), version)
	}
}

// all returns the names of all packages but the unrelated one.
func (w *dependencyEnv) all(t testing.TB) []string {
	t.Helper()
	var out []string
	for _, kind := range v1.PackageKinds() {
		list := v1.NewPackageList(kind)
		if err := w.Client.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		for _, p := range list.Packages() {
			if p.GetDeletionTimestamp() == nil && p.GetName() != w.unrelated.Name {
				out = append(out, strings.ToLower(kind)+"/"+p.GetName())
			}
		}
	}
	slices.Sort(out)
	return out
}

// All direct and indirect dependencies of a package are installed, at the highest versions that
// satisfy all constraints, with their real kinds.
//
// hardening: J12
func TestDependenciesAreInstalled(t *testing.T) {
	w := newDependencyEnv(t, "")
	w.push(t, "Provider", "network:v1.0.0")
	w.push(t, "Provider", "network:v1.4.0")
	w.push(t, "Provider", "network:v2.0.0")
	w.push(t, "Function", "greet:v0.3.0")
	w.push(t, "Configuration", "base:v1.0.0", "network >=v1.0.0 <v2")
	// The kind that dependents state for greet is wrong, which has no effect.
	root := w.config(
		t, "root", w.push(t, "Configuration", "root:v1.0.0", "configuration=base >=v1", "greet >=v0.1.0", "network"),
	)
	w.WaitHealthy(t, root)
	w.waitInstalled(t, &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "dep-network"}}, "v1.4.0")
	w.waitInstalled(t, &v1.Function{ObjectMeta: metav1.ObjectMeta{Name: "dep-greet"}}, "v0.3.0")
	base := &v1.Configuration{ObjectMeta: metav1.ObjectMeta{Name: "dep-base"}}
	w.waitInstalled(t, base, "v1.0.0")
	if got, want := base.Annotations[graph.AnnotationRequiredBy], w.repository("root"); got != want {
		t.Errorf("dep-base is there for %q, want %q", got, want)
	}
	w.untilEvent(t, w.Revisions(t, root)[0], "DependencyComing", w.repository("base")+" >=v1 is being installed")
	for _, repository := range []string{"base", "greet", "network"} {
		if n := len(w.registry.requests("/dep/" + repository + "/tags/list")); n != 1 {
			t.Errorf("the tags of %s were listed %d times", repository, n)
		}
	}
	w.assertUnchanged(t)

	t.Run("what is deleted comes back", func(t *testing.T) {
		p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "dep-network"}}
		if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			t.Fatal(err)
		}
		uid := p.UID
		if err := w.Client.Delete(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		eventually(t, "another one is there", func() bool {
			err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p)
			return err == nil && p.UID != uid && p.DeletionTimestamp == nil
		})
		w.waitInstalled(t, p, "v1.4.0")
		w.WaitHealthy(t, root)
	})
}

// A version conflict is explained in the condition of the package that causes it. None
// of its dependencies is installed, and no other package changes.
//
// hardening: F2
func TestVersionConflictsAreExplained(t *testing.T) {
	w := newDependencyEnv(t, "")
	w.push(t, "Provider", "queue:v1.0.0")
	w.push(t, "Provider", "queue:v2.0.0")
	w.push(t, "Configuration", "old:v1.0.0", "queue <v2")
	both := w.config(t, "both", w.push(t, "Configuration", "both:v1.0.0", "configuration=old", "queue >=v2"))
	w.WaitCondition(t, both, v1.TypeHealthy, corev1.ConditionFalse, "Unsolvable: ")
	for _, part := range []string{w.repository("queue"), "<v2", ">=v2"} {
		if message := both.GetCondition(v1.TypeHealthy).Message; !strings.Contains(message, part) {
			t.Errorf("the explanation does not name %q:\n%s", part, message)
		}
	}
	if got := w.all(t); !slices.Equal(got, []string{"configuration/dep-both"}) {
		t.Errorf("there is %v", got)
	}
	circle := w.config(t, "circle", w.push(t, "Configuration", "circle:v1.0.0", "configuration=round"))
	w.push(t, "Configuration", "round:v1.0.0", "configuration=circle")
	w.WaitCondition(t, circle, v1.TypeHealthy, corev1.ConditionFalse, "DependencyCycle: ")
	for _, version := range []string{"v1.0.0", "v2.0.0"} {
		self := w.config(t, "self", w.push(t, "Configuration", "self:"+version, "configuration=self >=v2"))
		w.WaitCondition(t, self, v1.TypeHealthy, corev1.ConditionFalse, "DependencyCycle: ")
		w.remove(t, self)
	}
	// The last package closes the cycle.
	sun := w.config(t, "sun", w.push(t, "Configuration", "sun:v1.0.0"))
	w.WaitHealthy(t, sun)
	moon := w.config(t, "moon", w.push(t, "Configuration", "moon:v1.0.0", "configuration=sun"))
	w.WaitHealthy(t, moon)
	next := w.push(t, "Configuration", "sun:v2.0.0", "configuration=moon")
	env.Update(t, w.Env, sun, func(p *v1.Configuration) { p.Spec.Package = next })
	path := fmt.Sprintf(
		"%[1]s v2.0.0 requires %[2]s v1.0.0 requires %[1]s v2.0.0", w.repository("sun"), w.repository("moon"),
	)
	w.WaitCondition(t, sun, v1.TypeHealthy, corev1.ConditionFalse, path)
	w.WaitHealthy(t, moon)
	w.remove(t, moon)
	w.remove(t, sun)
	vanished := w.config(t, "vanished", w.push(t, "Configuration", "vanished:v1.0.0", "nowhere"))
	w.WaitCondition(t, vanished, v1.TypeHealthy, corev1.ConditionFalse, w.repository("nowhere"))
	skips := newConfiguration("dep-skips", w.push(t, "Configuration", "skips:v1.0.0", "nowhere"))
	skips.Spec.SkipDependencyResolution = true
	w.CreateTemporary(t, skips)
	w.WaitHealthy(t, skips)
	w.assertUnchanged(t)

	t.Run("and resolved by a new version", func(t *testing.T) {
		w.push(t, "Configuration", "old:v1.1.0", "queue")
		// It is retried after a pause, or when the revision changes.
		env.Update(t, w.Env, w.Revisions(t, both)[0], func(rev v1.PackageRevision) {
			rev.SetAnnotations(map[string]string{"touched": "by a user"})
		})
		w.WaitPackage(t, both, "is healthy with the compatible version", func() bool {
			return both.GetCondition(v1.TypeHealthy).Status == corev1.ConditionTrue
		})
		w.waitInstalled(t, &v1.Configuration{ObjectMeta: metav1.ObjectMeta{Name: "dep-old"}}, "v1.1.0")
		w.waitInstalled(t, &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "dep-queue"}}, "v2.0.0")
	})
}

// A dependency that is installed under another name, or from the repository to which
// its own name is rewritten, is not installed again. If another package has the name of
// a dependency, the dependency gets a different name.
func TestOnePackageForEachRepository(t *testing.T) {
	w := newDependencyEnv(t, "")
	w.push(t, "Provider", "storage:v1.0.0")
	storage := env.NewProvider("my-storage", w.repository("storage")+":v1.0.0")
	w.CreateTemporary(t, storage)
	w.WaitHealthy(t, storage)
	root := w.config(t, "named", w.push(t, "Configuration", "named:v1.0.0", "storage >=v1"))
	w.WaitHealthy(t, root)

	// No installed package requires storage when this one is installed.
	w.remove(t, root)
	w.push(t, "Configuration", "middle:v1.0.0", "storage <v2")
	w.push(t, "Provider", "storage:v1.5.0")
	far := w.config(t, "far", w.push(t, "Configuration", "far:v1.0.0", "middle >=v1"))
	w.WaitHealthy(t, far)
	w.waitInstalled(t, &v1.Configuration{ObjectMeta: metav1.ObjectMeta{Name: "dep-middle"}}, "v1.0.0")

	w.CreateTemporary(t, rewriting("dep-public", "public.example.com/dep/", w.repository("")))
	w.push(t, "Provider", "pump:v1.0.0")
	public := newConfiguration("dep-public", "")
	public.Spec.Package, _ = w.registry.push(t, "dep/public:v1.0.0", meta("Configuration", "public",
		"spec:\n  dependsOn:\n  - {provider: public.example.com/dep/storage, version: '>=v1'}\n  - {provider: public.example.com/dep/pump, version: '>=v1'}\n"))
	w.CreateTemporary(t, public)
	w.WaitHealthy(t, public)
	pump := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "dep-pump"}}
	w.waitInstalled(t, pump, "v1.0.0")
	if got := pump.Spec.Package; got != "public.example.com/dep/pump:v1.0.0" {
		t.Errorf("what is rewritten was installed as %s", got)
	}

	// It is installed again after it was deleted, also for a package that requires it under another name. Its name
	// is not taken while it is being deleted.
	waits := w.config(t, "waits", w.push(t, "Configuration", "waits:v1.0.0", "pump >=v1"))
	w.WaitHealthy(t, waits)
	w.remove(t, public)
	env.Update(t, w.Env, pump, func(p *v1.Provider) { controllerutil.AddFinalizer(p, "example.org/hold") })
	if err := w.Client.Delete(t.Context(), pump); err != nil {
		t.Fatal(err)
	}
	w.WaitCondition(t, waits, v1.TypeHealthy, corev1.ConditionFalse, "")
	env.Update(t, w.Env, pump, func(p *v1.Provider) { controllerutil.RemoveFinalizer(p, "example.org/hold") })
	w.WaitPackage(t, pump, "is there again", func() bool { return pump.Spec.Package == w.repository("pump")+":v1.0.0" })
	w.remove(t, waits)
	w.remove(t, pump)

	w.push(t, "Provider", "clock:v1.0.0")
	taken := env.NewProvider("dep-clock", w.repository("storage")+":v1.0.0")
	taken.Spec.SkipDependencyResolution = true
	w.CreateTemporary(t, taken)
	other := w.config(t, "other", w.push(t, "Configuration", "other:v1.0.0", "clock"))
	w.WaitHealthy(t, other)
	got := w.all(t)
	i := slices.IndexFunc(got, func(name string) bool { return strings.HasPrefix(name, "provider/dep-clock-") })
	if i < 0 || len(got) != 6 {
		t.Errorf("there is %v", got)
	}
	w.assertUnchanged(t)
}

// A dependency with a digest is installed with that digest, even if its tag refers to
// different content now.
func TestInstallsExactContent(t *testing.T) {
	w := newDependencyEnv(t, graph.Upgrade)
	_, first := w.registry.push(t, "dep/dial:v1.0.0", meta("Provider", "dial", ""))
	exactly := "v1.0.0@" + first.String()
	w.registry.push(t, "dep/dial:v1.0.0", meta("Provider", "dial-again", ""))
	root := w.config(t, "exact", w.push(t, "Configuration", "exact:v1.0.0", "dial "+exactly))
	w.WaitHealthy(t, root)
	dial := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "dep-dial"}}
	w.waitInstalled(t, dial, exactly)
	w.remove(t, root)
	w.remove(t, dial)

	// It is installed with the current content of the tag, and then changes.
	other := w.config(t, "any", w.push(t, "Configuration", "any:v1.0.0", "dial"))
	w.WaitHealthy(t, other)
	w.waitInstalled(t, dial, "v1.0.0")
	root = w.config(t, "exact", w.repository("exact")+":v1.0.0")
	w.WaitHealthy(t, root)
	w.waitInstalled(t, dial, exactly)
	w.assertUnchanged(t)
}

// A package whose dependencies contradict installed packages does not stop new packages that share a dependency with it
// which is not installed yet.
func TestAConflictConcernsItsPackagesOnly(t *testing.T) {
	w := newDependencyEnv(t, "")
	for _, ref := range []string{"queue:v1.0.0", "queue:v2.0.0", "shared:v1.0.0", "shared:v2.0.0", "common:v1.0.0"} {
		w.push(t, "Provider", ref)
	}
	first := w.config(t, "first", w.push(t, "Configuration", "first:v1.0.0", "queue <v2"))
	w.WaitHealthy(t, first)
	broken := w.config(t, "broken", w.push(t, "Configuration", "broken:v1.0.0", "queue >=v2", "shared"))
	w.WaitCondition(t, broken, v1.TypeHealthy, corev1.ConditionFalse, "Unsolvable: ")
	second := w.config(t, "second", w.push(t, "Configuration", "second:v1.0.0", "shared <v2"))
	w.WaitHealthy(t, second)
	w.waitInstalled(t, &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "dep-shared"}}, "v1.0.0")
	w.WaitCondition(t, broken, v1.TypeHealthy, corev1.ConditionFalse, "DependencyVersion: ")
	for _, p := range []v1.Package{broken, second, first} {
		w.remove(t, p)
	}
}

// Installed packages change versions only as the policy allows, only if they were
// auto-installed, and no further than necessary.
//
// hardening: F4
func TestDependencyUpgrades(t *testing.T) {
	for policy, want := range map[graph.Policy]string{
		graph.None: "", graph.Upgrade: "v1.2.0", graph.UpgradeOrDowngrade: "v1.2.0",
	} {
		t.Run(string(policy), func(t *testing.T) {
			w := newDependencyEnv(t, policy)
			w.checkPolicyInLock(t, policy)
			w.push(t, "Provider", "mail:v1.0.0")
			first := w.config(t, "first", w.push(t, "Configuration", "first:v1.0.0", "mail >=v1"))
			w.WaitHealthy(t, first)
			for _, tag := range []string{"v1.2.0", "v1.3.0"} {
				w.push(t, "Provider", "mail:"+tag)
			}
			second := w.config(t, "second", w.push(t, "Configuration", "second:v1.0.0", "mail >=v1.1"))
			if want == "" {
				w.WaitCondition(t, second, v1.TypeHealthy, corev1.ConditionFalse, "DependencyVersion: ")
				w.waitInstalled(t, &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "dep-mail"}}, "v1.0.0")
			} else {
				w.WaitHealthy(t, second)
				w.waitInstalled(t, &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "dep-mail"}}, want)
			}
			w.WaitHealthy(t, first)
			third := w.config(t, "third", w.push(t, "Configuration", "third:v1.0.0", "mail <v1.1"))
			if policy == graph.UpgradeOrDowngrade {
				// No version satisfies all packages: the condition explains it, and nothing moves.
				w.WaitCondition(t, third, v1.TypeHealthy, corev1.ConditionFalse, "Unsolvable: ")
				w.waitInstalled(t, &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "dep-mail"}}, want)
			}
			w.assertUnchanged(t)
			for _, p := range []*v1.Configuration{first, second, third} {
				if err := w.Client.Delete(t.Context(), p); err != nil && !apierrors.IsNotFound(err) {
					t.Fatal(err)
				}
			}
		})
	}
}

// A version that would close a cycle with an installed dependency moves the dependency to a
// version without the cycle, and is refused only if there is none.
func TestAnUpgradeThatClosesACycleMovesTheDependency(t *testing.T) {
	w := newDependencyEnv(t, graph.UpgradeOrDowngrade)
	w.push(t, "Provider", "mail:v1.0.0")
	w.push(t, "Provider", "mail:v1.1.0", "configuration=app >=v1")
	app := w.config(t, "app", w.push(t, "Configuration", "app:v1.0.0"))
	w.WaitHealthy(t, app)
	first := w.config(t, "first", w.push(t, "Configuration", "first:v1.0.0", "mail >=v1"))
	w.WaitHealthy(t, first)
	mail := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "dep-mail"}}
	w.waitInstalled(t, mail, "v1.1.0")

	move := func(ref string) {
		env.Update(t, w.Env, app, func(p *v1.Configuration) { p.Spec.Package = ref })
	}
	move(w.push(t, "Configuration", "app:v2.0.0", "mail >=v1"))
	wait.Until(t, limit, "the dependency moves", func() (string, bool) {
		if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(mail), mail); err != nil {
			return err.Error(), false
		}
		return mail.Spec.Package, strings.HasSuffix(mail.Spec.Package, ":v1.0.0")
	})
	w.WaitHealthy(t, app)

	move(w.push(t, "Configuration", "app:v3.0.0", "mail >=v1.1"))
	w.WaitCondition(t, app, v1.TypeHealthy, corev1.ConditionFalse, "DependencyCycle: ")
	w.assertUnchanged(t)
}

// checkPolicyInLock checks that the Lock contains the policy, and contains it again after
// another client has changed it.
func (w *dependencyEnv) checkPolicyInLock(t *testing.T, policy graph.Policy) {
	t.Helper()
	lock := &v1beta1.Lock{}
	says := func() string {
		if err := w.Client.Get(t.Context(), client.ObjectKey{Name: v1beta1.LockName}, lock); err != nil {
			return err.Error()
		}
		return lock.Annotations[graph.AnnotationUpgrades]
	}
	eventually(t, "the Lock has the policy", func() bool { return says() == string(policy) })
	lock.Annotations[graph.AnnotationUpgrades] = "Whatever"
	if err := w.Client.Update(t.Context(), lock); err != nil && !apierrors.IsConflict(err) {
		t.Fatal(err)
	}
	eventually(t, "the Lock has the policy again", func() bool { return says() == string(policy) })
}

// Unusual dependencies have their documented results, and do not affect an unrelated package.
//
// hardening: F3, F4, F5, F8, F11, F12
func TestUnusualDependencies(t *testing.T) {
	w := newDependencyEnv(t, graph.UpgradeOrDowngrade)
	w.push(t, "Provider", "relay:v1.0.0")
	w.push(t, "Provider", "relay:v2.0.0")

	t.Run("a required version that does not exist", func(t *testing.T) {
		p := w.config(t, "yanked", w.push(t, "Configuration", "yanked:v1.0.0", "relay >=v3"))
		w.WaitCondition(t, p, v1.TypeHealthy, corev1.ConditionFalse, "which does not exist (versions: v1.0.0, v2.0.0)")
		w.remove(t, p)
	})
	t.Run("a package whose newest version is yanked", func(t *testing.T) {
		w.push(t, "Provider", "sunk:v1.0.0")
		w.pushWith(t, "Provider", "sunk:v2.0.0", crd("sunk.test", "Hull", "one"))
		w.registry.setStatus(t, "dep/sunk:v2.0.0", catalog.Status{State: catalog.Yanked})
		p := w.config(t, "fleet", w.push(t, "Configuration", "fleet:v1.0.0", "sunk"))
		w.WaitHealthy(t, p)
		sunk := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "dep-sunk"}}
		w.waitInstalled(t, sunk, "v1.0.0")
		w.remove(t, p)
		w.remove(t, sunk)
	})
	t.Run("an older version of an installed package", func(t *testing.T) {
		high := w.config(t, "high", w.push(t, "Configuration", "high:v1.0.0", "relay"))
		relay := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "dep-relay"}}
		w.WaitHealthy(t, high)
		w.waitInstalled(t, relay, "v2.0.0")
		low := w.config(t, "low", w.push(t, "Configuration", "low:v1.0.0", "relay <v2"))
		w.WaitHealthy(t, low)
		w.waitInstalled(t, relay, "v1.0.0")
		w.WaitHealthy(t, high)
		w.remove(t, high)
		w.remove(t, low)
		// A dependency without dependents stays until it is removed.
		w.WaitHealthy(t, relay)
		w.remove(t, relay)
	})
	t.Run("one package under two names", func(t *testing.T) {
		ref, _ := w.registry.push(t, "dep/twin:v1.0.0", provider("twin", crd("twin.test", "Thing", "one")))
		first := env.NewProvider("dep-a-twin", ref)
		w.CreateTemporary(t, first)
		w.WaitHealthy(t, first)
		second := env.NewProvider("dep-b-twin", ref)
		w.CreateTemporary(t, second)
		w.WaitCondition(t, second, v1.TypeHealthy, corev1.ConditionFalse, "ForeignOwner: ")
		p := w.config(t, "of-twins", w.push(t, "Configuration", "of-twins:v1.0.0", "twin"))
		w.WaitHealthy(t, p)
		w.WaitHealthy(t, first)
		if got := w.all(t); len(got) != 3 {
			t.Errorf("there is %v", got)
		}
		for _, p := range []v1.Package{p, second, first} {
			w.remove(t, p)
		}
	})
	t.Run("a name without a registry", func(t *testing.T) {
		ref, _ := w.registry.push(
			t, "dep/short:v1.0.0",
			meta("Configuration", "short", "spec:\n  dependsOn:\n  - {provider: acme/relay, version: '>=v1'}\n"),
		)
		p := w.config(t, "short", ref)
		w.WaitCondition(t, p, v1.TypeHealthy, corev1.ConditionFalse, "acme/relay")
		if got := w.all(t); !slices.Equal(got, []string{"configuration/dep-short"}) {
			t.Errorf("there is %v", got)
		}
	})
	t.Run("optional dependencies", w.checkOptionalDependencies)
	w.assertUnchanged(t)
}

// remove deletes a package and waits until it is gone.
func (w *dependencyEnv) remove(t *testing.T, p v1.Package) {
	t.Helper()
	if err := w.Client.Delete(t.Context(), p); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	eventually(t, p.GetName()+" is deleted", func() bool {
		return apierrors.IsNotFound(w.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p))
	})
}
