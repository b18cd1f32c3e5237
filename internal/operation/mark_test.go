package operation

import (
	"context"
	"errors"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/xpkg-dev/xpkg/apis"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// newPackage returns the package of the tests.
func newPackage() v1.Package {
	p := v1.NewPackage(v1.ProviderKind)
	p.SetName("boats")
	p.SetUID("a")
	p.SetGeneration(1)
	return p
}

// newMarked returns a cluster with the package, which a command that may undo its changes has created, and the package as it was written.
func newMarked(t *testing.T) (client.Client, v1.Package) {
	t.Helper()
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	cluster, p := fake.NewClientBuilder().WithScheme(scheme).Build(), newPackage()
	if err := newWriter(cluster, true).create(t.Context(), p); err != nil || markOf(p) == "" {
		t.Fatal(p.GetAnnotations(), err)
	}
	return cluster, p
}

// A command that leaves a package as it is removes the mark of the command that may undo it. It fails if the package was changed or deleted
// since it was read, and succeeds if only its status was.
func TestRemoveKeepsAnUnchangedPackage(t *testing.T) {
	for name, tc := range map[string]struct {
		meanwhile func(*testing.T, client.Client, v1.Package)
		want      error
	}{
		"as it was": {func(*testing.T, client.Client, v1.Package) {}, nil},
		"reconciled": {func(t *testing.T, cluster client.Client, p v1.Package) {
			p.SetLabels(map[string]string{"a": "b"})
			if err := cluster.Update(t.Context(), p); err != nil {
				t.Error(err)
			}
		}, nil},
		"changed": {func(t *testing.T, cluster client.Client, p v1.Package) {
			p.SetGeneration(2)
			if err := cluster.Update(t.Context(), p); err != nil {
				t.Error(err)
			}
		}, planner.ErrPlanMoved},
		"deleted": {func(t *testing.T, cluster client.Client, p v1.Package) {
			if err := cluster.Delete(t.Context(), p); err != nil {
				t.Error(err)
			}
		}, planner.ErrPlanMoved},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, p := newMarked(t)
			other := p.DeepCopyObject().(v1.Package)
			tc.meanwhile(t, cluster, other)
			if err := removeMark(t.Context(), cluster, p); !errors.Is(err, tc.want) {
				t.Fatalf("got %v, want %v", err, tc.want)
			}
			if tc.want != nil {
				return
			}
			live := v1.NewPackage("Provider")
			if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(p), live); err != nil || len(live.GetAnnotations()) > 0 {
				t.Errorf("got %v, %v", live.GetAnnotations(), err)
			}
		})
	}
}

// A command removes its own mark when it ends, and not that of another one which has written the package since without a change of its spec.
func TestReleaseLeavesTheMarkOfAnotherCommand(t *testing.T) {
	cluster, p := newMarked(t)
	first, other := stateOf(p), p.DeepCopyObject().(v1.Package)
	if err := newWriter(cluster, true).update(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	second := stateOf(other)
	for _, tc := range []struct {
		name  string
		state writtenState
		// read is the package as the command has read it last.
		read v1.Package
		want string
	}{
		{"of the first command", first, p, second.mark},
		{"of the first command, which has seen the second one", first, other, second.mark},
		{"of a command that writes no marks", writtenState{}, other, second.mark},
		{"of the second command", second, other, ""},
	} {
		tc.state.release(t.Context(), cluster, tc.read)
		live := v1.NewPackage(v1.ProviderKind)
		if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(p), live); err != nil || markOf(live) != tc.want {
			t.Errorf("after the release %s: the mark %q, %v; want %q", tc.name, markOf(live), err, tc.want)
		}
	}
}

// A command removes its own mark also if another client has changed the package meanwhile.
func TestReleaseAfterAChange(t *testing.T) {
	cluster, p := newMarked(t)
	other := p.DeepCopyObject().(v1.Package)
	other.SetGeneration(2)
	if err := cluster.Update(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	stateOf(p).release(t.Context(), cluster, p)
	live := v1.NewPackage(v1.ProviderKind)
	if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(p), live); err != nil || markOf(live) != "" || live.GetGeneration() != 2 {
		t.Errorf("the mark %q at the generation %d, %v", markOf(live), live.GetGeneration(), err)
	}
}

// A client that cannot undo its changes removes the marks of other commands.
func TestWritesWithoutUndoRemoveMarks(t *testing.T) {
	cluster, p := newMarked(t)
	if err := newWriter(cluster, false).update(t.Context(), p); err != nil || markOf(p) != "" {
		t.Error(p.GetAnnotations(), err)
	}
}

// The state of a package identifies its last write, also by a client that changes nothing.
func TestStateMatches(t *testing.T) {
	written := func(manager, subresource string) func(v1.Package) {
		return func(p v1.Package) {
			now := metav1.Now()
			p.SetManagedFields(append(p.GetManagedFields(), metav1.ManagedFieldsEntry{
				Manager: manager, Operation: metav1.ManagedFieldsOperationApply, Subresource: subresource, Time: &now,
			}))
		}
	}
	for name, tc := range map[string]struct {
		meanwhile func(v1.Package)
		want      bool
	}{
		"as it was":                 {func(v1.Package) {}, true},
		"labels":                    {func(p v1.Package) { p.SetLabels(map[string]string{"a": "b", graph.LabelAutoInstalled: "true"}) }, true},
		"written by xpkg":           {written(plan.FieldManager, ""), true},
		"status of another client":  {written("monitor", "status"), true},
		"applied by another client": {written("kubectl", ""), false},
		"written again at once": {func(p v1.Package) {
			writers := slices.Clone(p.GetManagedFields())
			writers[0].FieldsV1 = metav1.NewFieldsV1(`{"f:spec":{"f:package":{}}}`)
			p.SetManagedFields(writers)
		}, false},
		"installed explicitly":    {func(p v1.Package) { p.SetLabels(nil) }, false},
		"spec":                    {func(p v1.Package) { p.SetGeneration(2) }, false},
		"another object":          {func(p v1.Package) { p.SetUID("b") }, false},
		"mark of another command": {func(p v1.Package) { revision.SetUndo(p, "two") }, false},
		"without its mark":        {func(p v1.Package) { revision.SetUndo(p, "") }, false},
	} {
		p := newPackage()
		revision.SetUndo(p, "one")
		written("flux", "")(p)
		state := stateOf(p).asDependency()
		p.SetLabels(map[string]string{graph.LabelAutoInstalled: "true"})
		tc.meanwhile(p)
		if got := state.matches(p); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}

// An interrupt does not end a write of a command that may undo it.
func TestInterruptsDoNotEndMarkedWrites(t *testing.T) {
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	cluster := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			interrupt()
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return c.Create(ctx, o, opts...)
		},
	}).Build()
	if err := newWriter(cluster, true).create(ctx, newPackage()); err != nil {
		t.Error(err)
	}
}
