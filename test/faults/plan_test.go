package faults_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/testing/fault"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// A plan that is made immediately before an operation lists the writes that the manager then makes,
// and no others, in every scenario.
func TestPlanEqualsTheWritesOfEveryScenario(t *testing.T) {
	s := newSuite(t, fault.SubjectsByName(tokens, "/locks", "/controllerrevisions"), 60001)
	s.installHolder(t)
	for _, sc := range scenarios {
		t.Run(sc.name, func(t *testing.T) {
			r := s.newInstances(t, sc, 1)[0]
			s.waitIdle(t)
			planned := s.plan(t, r, sc.act)
			before := s.observer.snapshot(r).of(r)
			s.network.Set(r.name, fault.Fault{})
			s.do(t, sc.act, []*instance{r})
			s.until(t, "the operation is done", []*instance{r}, sc.act.then)
			s.waitIdle(t)
			if planned.Operation == planner.Uninstall {
				checkDeleted(t, r, planned, before, s.observer.snapshot(r).of(r))
			} else if diff := cmp.Diff(plannedWrites(planned), writes(s.network.Calls(r.name))); diff != "" {
				t.Errorf("writes (-planned +made):\n%s", diff)
			}
		})
	}
}

// plan plans an operation. The operation runs against a client that records its write instead of
// making it.
func (s *suite) plan(t *testing.T, r *instance, act step) *planner.Plan {
	t.Helper()
	recorder := &recordingClient{WithWatch: s.Client}
	dryEnv := *s.Env
	dryEnv.Client = recorder
	dry := *s
	dry.Env = &dryEnv
	if err := act.do(t.Context(), &dry, r); err != nil {
		t.Fatal(err)
	}
	cluster, err := planner.NewCluster(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	blobs, err := store.Open(t.TempDir()+"/store", store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer blobs.Close()
	source := fetch.NewSource(fetch.Options{Store: blobs, Remote: remote.Options{Transport: alias{s.Registry}}})
	defer source.Close()
	pl := &planner.Planner{Reader: s.Client, Cluster: cluster, Source: source, Namespace: "crossplane-system"}
	var out *planner.Plan
	switch o := recorder.written.(type) {
	case v1.PackageRevision:
		// The user changes a revision, and the package stays unchanged.
		p := v1.NewPackage(r.scenario.kind)
		if err := s.Client.Get(t.Context(), r.key(), p); err != nil {
			t.Fatal(err)
		}
		pl.Reader = overlay{s.Client, o}
		out, err = pl.Install(t.Context(), p, planner.Options{})
	case v1.Package:
		if recorder.deleted {
			out, err = pl.Uninstall(t.Context(), o, planner.Options{})
		} else {
			out, err = pl.Install(t.Context(), o, planner.Options{})
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// recordingClient records the object of the last write.
type recordingClient struct {
	client.WithWatch
	written client.Object
	deleted bool
}

func (c *recordingClient) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	c.written = o
	return nil
}

func (c *recordingClient) Update(_ context.Context, o client.Object, _ ...client.UpdateOption) error {
	c.written = o
	return nil
}

func (c *recordingClient) Delete(_ context.Context, o client.Object, _ ...client.DeleteOption) error {
	c.written, c.deleted = o, true
	return nil
}

func (c *recordingClient) Patch(_ context.Context, o client.Object, patch client.Patch, _ ...client.PatchOption) error {
	raw, err := patch.Data(o)
	if err != nil {
		return err
	}
	c.written = o
	return json.Unmarshal(raw, o)
}

// overlay reads a cluster in which one revision is different.
type overlay struct {
	client.Reader
	revision v1.PackageRevision
}

func (o overlay) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := o.Reader.List(ctx, list, opts...); err != nil {
		return err
	}
	if revisions, ok := list.(v1.PackageRevisionList); ok {
		for _, rev := range revisions.Revisions() {
			if rev.GetUID() == o.revision.GetUID() {
				*rev.RevisionSpec() = *o.revision.RevisionSpec()
			}
		}
	}
	return nil
}

// plannedWrites returns the writes of a plan in the form of writes.
func plannedWrites(p *planner.Plan) []string {
	var out []string
	add := func(method, resource, name string) {
		if method == http.MethodPost {
			name = ""
		}
		out = append(out, strings.TrimSpace(method+" "+resource+" "+name))
	}
	for _, r := range p.Revisions {
		method := map[planner.RevisionAction]string{
			planner.CreateRevision: http.MethodPost, planner.CollectRevision: http.MethodDelete,
		}[r.Action]
		if method == "" {
			method = http.MethodPut
		}
		add(method, strings.ToLower(p.Package.Kind)+"revisions", r.Name)
	}
	if p.Blocked() {
		slices.Sort(out)
		return out
	}
	for _, c := range p.Objects.Changes {
		method := http.MethodPut
		switch {
		case c.Action == plan.Create:
			method = http.MethodPost
		case c.MetadataOnly:
			method = http.MethodPatch
		}
		add(method, strings.ToLower(c.Ref.Kind)+"s", c.Ref.Name)
	}
	slices.Sort(out)
	return out
}

// writes returns the writes among calls, except for writes of statuses. A write of an existing object
// counts once, because a write with a stale resourceVersion is repeated.
func writes(calls []fault.Call) []string {
	var out []string
	for _, c := range calls {
		parts := strings.Split(strings.Trim(c.Path, "/"), "/")
		if c.Side != fault.Cluster || c.Method == http.MethodGet || c.Method == "WATCH" || parts[len(parts)-1] == "status" {
			continue
		}
		write := c.Method + " " + strings.Join(parts[3:], " ")
		if strings.HasPrefix(write, "PUT providers ") || strings.HasPrefix(write, "PUT configurations ") {
			continue // The manager adds its finalizer.
		}
		if c.Method == http.MethodPost || !slices.Contains(out, write) {
			out = append(out, write)
		}
	}
	slices.Sort(out)
	return out
}

// checkDeleted checks that exactly the objects that the plan deletes are gone.
func checkDeleted(t *testing.T, r *instance, p *planner.Plan, before, after state) {
	t.Helper()
	var planned, gone []string
	for _, c := range p.Objects.Changes {
		if what, group, _ := strings.Cut(c.Ref.Name, "."); group == r.group() && c.Action == plan.Delete {
			planned = append(planned, what)
		}
	}
	for what := range before.Objects {
		if _, exists := after.Objects[what]; !exists {
			gone = append(gone, what)
		}
	}
	slices.Sort(planned)
	slices.Sort(gone)
	if diff := cmp.Diff(planned, gone); diff != "" || len(planned) == 0 {
		t.Errorf("deleted objects (-planned +gone):\n%s", diff)
	}
	if len(p.Revisions) != len(before.Revisions) {
		t.Errorf("the plan deletes %s, want %d", fmt.Sprint(p.Revisions), len(before.Revisions))
	}
}
