// Command library shows how a program uses the packages below pkg/. It reads a package from a
// registry, counts its objects, resolves its dependencies, and prints the plan of an install
// into a cluster with the objects of a YAML file.
//
//	go run ./examples/library [-objects FILE] REFERENCE
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

func main() {
	objects := flag.String("objects", "", "a YAML `file` with the objects of the cluster")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, flag.Arg(0), *objects); err != nil {
		e := errcode.From(err)
		fmt.Fprintf(os.Stderr, "error: %s: %v\n%s\n", e.Code.Name, err, e.Do)
		os.Exit(e.Code.Class.Exit)
	}
}

func run(ctx context.Context, out io.Writer, reference, objects string) (err error) {
	dir, err := os.MkdirTemp("", "library-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	content, err := store.Open(dir, store.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	r := registry{client: remote.New(remote.Options{}), store: content}
	defer r.client.Close()

	ref, err := oci.ParseReference(reference, oci.ParseOptions{})
	if err != nil {
		return err
	}
	pkg, _, err := r.read(ctx, ref)
	if err != nil {
		return err
	}
	printObjects(out, pkg)
	if err := resolveDependencies(ctx, out, r, pkg.Meta); err != nil {
		return err
	}
	live, err := readObjects(objects)
	if err != nil {
		return err
	}
	return printPlan(out, pkg, live)
}

// printObjects prints how many objects of each kind a package contains.
func printObjects(out io.Writer, pkg *xpkg.Package) {
	kinds := map[string]int{}
	for _, o := range pkg.Objects {
		kinds[o.GVK.Kind]++
	}
	fmt.Fprintf(out, "%s %s\n", pkg.Meta.Kind, pkg.Meta.Name)
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		fmt.Fprintf(out, "  %d %s\n", kinds[kind], kind)
	}
}

// resolveDependencies prints the versions of everything that a package requires.
func resolveDependencies(ctx context.Context, out io.Writer, r registry, meta xpkg.Meta) error {
	var roots []dependency.Root
	for _, d := range lockfile.Dependencies(meta.Dependencies()) {
		roots = append(roots, dependency.Root{
			Package: d.Package, Constraint: d.Constraint, Optional: d.Optional, By: meta.Name,
		})
	}
	solver := resolver.Resolver{Registry: r}
	result, err := solver.Resolve(ctx, resolver.Request{Roots: roots})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "Dependencies")
	for _, p := range result.Packages {
		fmt.Fprintf(out, "  %s %s (%s)\n", p.RepositoryReference().RepositoryPath(), p.Version, p.Kind)
	}
	return nil
}

// printPlan prints what an install changes, or why it is refused.
func printPlan(out io.Writer, pkg *xpkg.Package, live map[plan.Ref]plan.Live) error {
	objects, err := desired.Of(pkg, desired.Options{Package: pkg.Meta.Name})
	if err != nil {
		return err
	}
	who := plan.Requester{
		Revision: plan.Owner{APIVersion: "pkg.crossplane.io/v1", Kind: string(pkg.Meta.Kind) +
			"Revision", Name: pkg.Meta.Name + "-1"},
		Package: plan.Owner{APIVersion: "pkg.crossplane.io/v1", Kind: string(pkg.Meta.Kind), Name: pkg.Meta.Name},
	}
	p := plan.Establish(objects.Desired(), live, nil, who)
	fmt.Fprintln(out, "Plan")
	for _, refusal := range p.Refusals {
		fmt.Fprintf(out, "  refused: %s %s: %s\n", refusal.Ref.Kind, refusal.Ref.Name, refusal.Reason)
	}
	if len(p.Refusals) > 0 {
		return nil // One refusal stops the whole plan.
	}
	for _, change := range p.Changes {
		fmt.Fprintf(out, "  %s %s %s\n", change.Action, change.Ref.Kind, change.Ref.Name)
	}
	return nil
}

// readObjects reads the metadata of the objects in a YAML file.
func readObjects(file string) (map[plan.Ref]plan.Live, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	docs, err := xpkg.Split(text, file, xpkg.Limits{})
	if err != nil {
		return nil, err
	}
	live := map[plan.Ref]plan.Live{}
	for _, d := range docs {
		var object metav1.PartialObjectMetadata
		if err := d.Decode(&object); err != nil {
			return nil, err
		}
		ref := plan.Ref{APIVersion: object.APIVersion, Kind: object.Kind, Name: object.Name}
		live[ref] = plan.Live{
			Ref: ref, UID: object.UID, Labels: object.Labels, Annotations: object.Annotations, Owners: object.OwnerReferences,
		}
	}
	return live, nil
}
