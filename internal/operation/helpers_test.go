package operation

import (
	"fmt"
	"io"

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

// atomic returns an operation that undoes its changes.
func atomic(cluster client.Client) Operation {
	return Operation{Engine: engineOf(cluster, io.Discard), Atomic: true}
}

// newChange returns the change of a package that was just written.
func newChange(before, after v1.Package) *change {
	return &change{before: before, after: after, written: stateOf(after)}
}

func named(kind, name string) v1.Package {
	p := v1.NewPackage(kind)
	p.SetName(name)
	return p
}
