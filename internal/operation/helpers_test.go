package operation

import (
	"fmt"
	"io"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// noProgress reports no progress.
type noProgress struct{}

func (noProgress) Set(string, ...any)    {}
func (noProgress) IsSet() bool           { return false }
func (noProgress) End()                  {}
func (noProgress) Step(int, int, string) {}

// notes writes notes.
type notes struct{ io.Writer }

func (notes) Progress() Progress        { return noProgress{} }
func (notes) Task(string, ...any) Task  { return noProgress{} }
func (n notes) PlanUnavailable(w error) { n.Note("no plan: %v", w) }

func (n notes) Note(text string, args ...any) { fmt.Fprintf(n, "note: "+text+"\n", args...) }

func engineOf(cluster client.Client, out io.Writer) *Engine {
	return &Engine{Client: cluster, Reporter: notes{out}}
}

// undone returns the error of a transaction that has failed, after its changes were undone.
func undone(t *testing.T, cluster client.Client, plan planUndoFunc, why error, changes ...*change) error {
	t.Helper()
	_, err := engineOf(cluster, io.Discard).undoAll(t.Context(), plan, why, changes, undoing{})
	return err
}

func named(kind, name string) v1.Package {
	p := v1.NewPackage(kind)
	p.SetName(name)
	return p
}
