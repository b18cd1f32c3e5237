package cli_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// TestUpdateAcceptsSeveralPackages proves that one command moves several packages: to their newest versions, or to the
// versions that the command names, with names and references.
func TestUpdateAcceptsSeveralPackages(t *testing.T) {
	b := newBench(t)
	for _, tag := range []string{"v1.0.0", "v2.0.0", "v2.1.0"} {
		b.push(t, "several/sloop", tag, "Sloop")
		b.push(t, "several/ketch", tag, "Ketch")
	}
	for _, name := range []string{"sloop", "ketch"} {
		b.must(t, 0, "install", "provider", b.registry+"/several/"+name+":v1.0.0", name, "--wait", "1m")
	}
	t.Cleanup(func() {
		b.run(t, b.kubeconfig, "uninstall", "sloop", "ketch", "--yes", "--on-delete", "cascade=100", "--wait", "1m")
	})
	at := func(sloop, ketch string) {
		t.Helper()
		for name, want := range map[string]string{"sloop": sloop, "ketch": ketch} {
			if got := b.provider(t, name).Spec.Package; got != b.registry+"/several/"+name+":"+want {
				t.Errorf("%s is %s, want %s", name, got, want)
			}
		}
	}

	b.must(t, 3, "update", "sloop", "provider/ketch").
		prints(t, "^error: NotConfirmed: confirmation required to change 2 installed packages")
	b.must(t, 2, "update", "sloop", "ketch", "--dry-run").prints(t, "^update provider/sloop$", "^update provider/ketch$")
	b.must(t, 0, "update", "sloop@v2.0.0", "provider", "ketch", "--yes", "--wait", "1m").prints(t,
		`^provider/sloop healthy \(.*/sloop:v2.0.0\)$`, `^provider/ketch healthy \(.*/ketch:v2.1.0\)$`)
	at("v2.0.0", "v2.1.0")
	b.must(t, 0, "update", "sloop", "ketch", "--yes").prints(t, "^provider/sloop updated ", "^provider/ketch unchanged ")
	at("v2.1.0", "v2.1.0")
	b.must(t, 0, "update", "sloop", "ketch", "--revision-history-limit", "3", "--yes").
		prints(t, "^provider/sloop updated ", "^provider/ketch updated ")
	if limit := b.provider(t, "ketch").Spec.RevisionHistoryLimit; limit == nil || *limit != 3 {
		t.Errorf("the history limit is %v", limit)
	}

	// References select packages by their repositories, and KIND REF NAME is the form of Crossplane's CLI.
	b.must(t, 0, "update", b.registry+"/several/ketch:v2.0.0", b.registry+"/several/sloop:v2.0.0", "--yes")
	at("v2.0.0", "v2.0.0")
	b.must(t, 0, "update", "provider", b.registry+"/several/ketch:v1.0.0", "--yes")
	b.must(t, 0, "update", "provider", b.registry+"/several/sloop:v1.0.0", "sloop", "--yes")
	at("v1.0.0", "v1.0.0")
	b.plain(t, 0, "approve", "sloop", "ketch").
		prints(t, "^provider/sloop has no pending approval$", "^provider/ketch has no pending approval$")

	// A package that is installed by digest alone stays, and the others move.
	b.must(t, 0, "update", b.registry+"/several/sloop@"+
		b.provider(t, "sloop").Status.ResolvedDigest, "--yes", "--wait", "1m")
	b.must(t, 2, "update", "--all", "--dry-run").prints(t, "^update provider/ketch$")
	b.must(t, 0, "update", "sloop@v1.0.0", "--yes", "--wait", "1m")

	for _, wrong := range [][]string{
		{"update", "sloop", "ketch", "--version", "v2.0.0"},
		{"update", "sloop", "provider/sloop"},
		{"update", "sloop@", "ketch"},
		{"plan", "update", "sloop", "ketch", "--version", "v2.0.0"},
		{"plan", "update", "sloop", "--all"},
	} {
		b.must(t, 3, wrong...).prints(t, "^error: Usage: ")
	}
	b.must(t, 5, "update", "sloop", "ketch", "dinghy", "--yes").
		prints(t, "^error: PackageNotFound: no package dinghy is installed")
	at("v1.0.0", "v1.0.0")
}

// TestUpdateInstallsMissingPackages proves that --install makes an update an upsert, and that install names the update.
func TestUpdateInstallsMissingPackages(t *testing.T) {
	b := newBench(t)
	first, second := b.push(t, "upsert/yawl", "v1.0.0", "Yawl"), b.push(t, "upsert/yawl", "v2.0.0", "Yawl")
	t.Cleanup(func() {
		b.run(t, b.kubeconfig, "uninstall", "upsert-yawl", "--yes", "--on-delete", "cascade=100", "--wait", "1m")
	})
	b.must(t, 5, "update", first, "--yes").prints(
		t, "^error: PackageNotFound: no package from .*/upsert/yawl is installed$", "xpkg install .*/upsert/yawl:v1.0.0",
	)
	b.must(t, 5, "update", "yawl", "--install", "--yes").prints(t, "^error: PackageNotFound: ")
	b.must(t, 0, "update", "--install", first, "--yes", "--wait", "1m").prints(t, "^provider/upsert-yawl healthy ")
	b.must(t, 9, "install", "provider", second).
		prints(t, "^error: AlreadyInstalled: ", "Update it with `xpkg update provider/upsert-yawl .*/upsert/yawl:v2.0.0`")
	b.must(t, 0, "update", "--install", second, "--yes", "--wait", "1m").
		prints(t, "^provider/upsert-yawl healthy .*:v2.0.0")
}

// TestInstallFindsTheRepositoryUnderAnotherName proves that a repository is not installed twice, and that the error
// names the installed package.
func TestInstallFindsTheRepositoryUnderAnotherName(t *testing.T) {
	b := newBench(t)
	first, second := b.push(t, "twice/skiff", "v1.0.0", "Skiff"), b.push(t, "twice/skiff", "v2.0.0", "Skiff")
	other := b.push(t, "thrice/skiff", "v1.0.0", "Skiff")
	b.must(t, 0, "install", first, "skiff", "--wait", "1m")
	t.Cleanup(func() {
		b.run(t, b.kubeconfig, "uninstall", "skiff", "--yes", "--on-delete", "cascade=100", "--wait", "1m")
	})
	for _, kind := range [][]string{nil, {"provider"}} {
		install := append([]string{"install"}, kind...)
		plan := append([]string{"plan"}, install...)
		b.must(t, 0, append(install, first)...).prints(t, "^provider/skiff unchanged ")
		b.must(t, 0, append(plan, first)...).prints(t, "^Nothing to do")
		for _, command := range [][]string{install, append(install, "--dry-run"), append(install, "--yes"), plan} {
			b.must(t, 9, append(command, second)...).prints(
				t, "^error: AlreadyInstalled: provider/skiff is installed from .*:v1.0.0, not from .*:v2.0.0$",
				"Update it with `xpkg update provider/skiff .*/twice/skiff:v2.0.0`\\.$",
			)
			b.must(t, 9, append(command, second, "sloop")...).
				prints(t, "^error: AlreadyInstalled: ", "Update it with `xpkg update provider/skiff .*/twice/skiff:v2.0.0`\\.$")
			b.must(t, 9, append(command, first, "sloop")...).prints(
				t, "^error: AlreadyInstalled: provider/skiff is installed from .*:v1.0.0 already", "`xpkg describe provider/skiff`",
			)
			b.must(t, 9, append(command, other, "skiff")...).
				prints(t, "^error: AlreadyInstalled: ", "or install both by adding another name")
		}
	}
	b.gone(t, "sloop")
	b.gone(t, "twice-skiff")
	if got := b.provider(t, "skiff").Spec.Package; got != first {
		t.Errorf("the package is %s, want %s", got, first)
	}
	// As after `xpkg sync` and `xpkg apply`.
	digest := "@" + b.provider(t, "skiff").Status.ResolvedDigest
	b.must(t, 0, "update", "skiff", first+digest, "--yes", "--wait", "1m")
	for _, request := range []string{first, first + digest, oci.RepositoryName(first) + digest} {
		for _, flags := range [][]string{nil, {"--dry-run"}, {"--yes"}} {
			b.must(t, 9, append([]string{"install", "provider", request, "sloop"}, flags...)...).
				prints(t, "^error: AlreadyInstalled: provider/skiff is installed from .*:v1.0.0@sha256:.* already")
		}
		b.must(t, 9, "plan", "install", "provider", request, "sloop").prints(t, "^error: AlreadyInstalled: ")
		b.must(t, 0, "plan", "install", request).prints(t, "^Nothing to do")
		b.must(t, 0, "install", request, "--dry-run").prints(t, "^Nothing to do")
		b.must(t, 0, "install", request).prints(t, "^provider/skiff unchanged ")
	}
	b.gone(t, "sloop")
	if got := b.provider(t, "skiff").Spec.Package; got != first+digest {
		t.Errorf("the package is %s, want %s", got, first+digest)
	}
}

// TestQuietCommandsPrintResultsOnly proves that --quiet leaves out plans that no user is asked to confirm, progress and
// notes.
func TestQuietCommandsPrintResultsOnly(t *testing.T) {
	b := newBench(t)
	first, second := b.push(t, "quiet/gig", "v1.0.0", "Gig"), b.push(t, "quiet/gig", "v2.0.0", "Gig")
	for _, command := range [][]string{
		{"install", first, "gig", "--wait", "1m", "--adopt"}, {"install", first}, {"update", "gig", second, "--wait", "1m"},
		{"update", "gig@v1.0.0"},
		{"list"}, {"tree"}, {"describe", "gig"}, {"history", "gig"},
		{"uninstall", "gig", "--wait", "1m"},
	} {
		command = append(command, "--quiet")
		run := b.plain
		switch command[0] {
		case "install", "update", "uninstall":
			command, run = append(command, "--yes"), b.must
		}
		if got := run(t, 0, command...); got.errors != "" {
			t.Errorf("xpkg %q writes to standard error:\n%s", command, got.errors)
		}
	}
}

// TestAtomicCommandsUndoTheirChanges proves that --atomic leaves the packages as they were before a command that fails.
func TestAtomicCommandsUndoTheirChanges(t *testing.T) {
	b := newBench(t)
	first, second := b.push(t, "atomic/junk", "v1.0.0", "Junk"), b.push(t, "atomic/junk", "v2.0.0", "Junk")
	b.push(t, "atomic/dhow", "v2.0.0", "Dhow")
	dhow := b.push(t, "atomic/dhow", "v1.0.0", "Dhow")
	// No package becomes healthy within a nanosecond. The manager may create the CRD of the deleted package once more, and
	// the garbage collector then deletes it.
	b.must(t, 11, "install", "provider", b.push(t, "atomic/raft", "v1.0.0", "Raft"), "raft", "--wait", "1ns", "--atomic").
		prints(t, "^error: NotHealthyInTime: ", "All changes were undone: provider/raft was deleted.")
	b.must(t, 0, "install", "provider", first, "junk", "--atomic").prints(t, "^provider/junk healthy ")
	b.must(t, 0, "install", "provider", dhow, "dhow", "--atomic", "--wait", "1m")
	t.Cleanup(func() {
		b.run(t, b.kubeconfig, "uninstall", "junk", "dhow", "--yes", "--on-delete", "cascade=100", "--wait", "1m")
	})
	b.must(t, 11, "update", "junk", second, "--wait", "1ns", "--atomic", "--yes").
		prints(
			t,
			"Correct the cause above and try again. All changes were undone: provider/junk was returned to .*/junk:v1.0.0. CRDs that only the new version of a returned package contains stay, with their custom resources.$",
		)
	// The command ends when the former version is healthy again.
	if p := b.provider(t, "junk"); p.GetCondition(v1.TypeHealthy).Status != corev1.ConditionTrue ||
		p.GetCondition(v1.TypeHealthy).ObservedGeneration != p.Generation {
		t.Errorf("the conditions of the returned package are %+v", p.Status.Conditions)
	}
	b.must(t, 11, "update", "junk", "dhow", "--wait", "1ns", "--atomic", "--yes").
		prints(t, "provider/junk was returned to .*/junk:v1.0.0", "provider/dhow was returned to .*/dhow:v1.0.0")
	for name, want := range map[string]string{"junk": first, "dhow": dhow} {
		if got := b.provider(t, name).Spec.Package; got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

// TestAtomicUpdatesIgnoreEarlierFailures proves that the failure of a package that was not healthy before a command,
// and that the command does not change, does not undo the changes of others.
func TestAtomicUpdatesIgnoreEarlierFailures(t *testing.T) {
	b := newBench(t)
	first, second := b.push(t, "earlier/snow", "v1.0.0", "Snow"), b.push(t, "earlier/snow", "v2.0.0", "Snow")
	b.must(t, 0, "install", "provider", first, "snow", "--wait", "1m")
	brig := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "brig"}}
	brig.Spec.Package = b.registry + "/earlier/missing:v1.0.0"
	if err := b.client.Create(t.Context(), brig); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.run(t, b.kubeconfig, "uninstall", "snow", "brig", "--yes", "--on-delete", "cascade=100", "--wait", "1m")
	})
	got := b.must(t, 5, "update", "brig@v1.0.0", "snow@v2.0.0", "--atomic", "--yes", "--wait", "1m")
	got.prints(t, "^provider/snow healthy .*:v2.0.0", "^error: RepositoryNotFound: provider/brig ")
	if p := b.provider(t, "snow").Spec.Package; p != second || strings.Contains(got.errors, "undone") {
		t.Errorf("snow is %s after:\n%s", p, got.errors)
	}
	alone := b.must(t, 5, "update", "brig", "v1.0.0", "--atomic", "--yes", "--wait", "1m")
	if strings.Contains(alone.errors, "undone") {
		t.Errorf("a command without changes reports:\n%s", alone.errors)
	}
}

// TestUpdatesThatMoveAnObject proves that one command updates two packages of which one takes over a CRD from the
// other, in each order of their names, and keeps the custom resources. The new holder alone is refused.
func TestUpdatesThatMoveAnObject(t *testing.T) {
	b := newBench(t)
	const group = "moved.apply.test"
	push := func(name, tag string, kinds ...string) string {
		stream := "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata:\n  name: p\n"
		for _, kind := range kinds {
			stream += publish.Definition(group, kind, "the same")
		}
		return publish.Stream(t, b.registry, "moved/"+name, tag, []byte(stream)).String()
	}
	push("quay", "v1.0.0", "Quay", "Barge")
	push("quay", "v2.0.0", "Quay")
	push("raft", "v1.0.0", "Raft")
	push("raft", "v2.0.0", "Raft", "Barge")
	b.must(t, 0, "install", "provider", b.registry+"/moved/quay:v1.0.0", "quay", "--wait", "1m")
	b.must(t, 0, "install", "provider", b.registry+"/moved/raft:v1.0.0", "raft", "--wait", "1m")
	t.Cleanup(func() {
		b.run(t, b.kubeconfig, "uninstall", "quay", "raft", "--yes", "--on-delete", "cascade=100", "--wait", "1m")
	})
	barge := &unstructured.Unstructured{}
	barge.SetAPIVersion(group + "/v1")
	barge.SetKind("Barge")
	barge.SetName("one")
	if err := b.client.Create(t.Context(), barge); err != nil {
		t.Fatal(err)
	}
	uid := barge.GetUID()

	b.must(t, 9, "update", "raft@v2.0.0", "--yes").prints(t, "^error: ForeignOwner: ")
	b.must(t, 2, "update", "raft@v2.0.0", "quay@v2.0.0", "--dry-run").
		prints(t, `release +CustomResourceDefinition barges\.`, `update +CustomResourceDefinition barges\.`)
	b.must(t, 0, "update", "raft@v2.0.0", "quay@v2.0.0", "--yes", "--wait", "1m")
	if p := b.provider(t, "raft"); p.Spec.Package != b.registry+"/moved/raft:v2.0.0" ||
		p.GetCondition(v1.TypeHealthy).Status != corev1.ConditionTrue {
		t.Errorf("raft is %s, %+v", p.Spec.Package, p.Status.Conditions)
	}
	b.must(t, 0, "update", "quay@v1.0.0", "raft@v1.0.0", "--yes", "--atomic")
	if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(barge), barge); err != nil || barge.GetUID() != uid {
		t.Errorf("the custom resource after the moves: %v, UID %s, want %s", err, barge.GetUID(), uid)
	}
}
