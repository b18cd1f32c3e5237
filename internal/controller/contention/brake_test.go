package contention_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/controller/contention"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

var thing = plan.Ref{
	APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "things.example.org",
}

// object simulates an object of an API server. Each write increments its version.
type object struct {
	ref     plan.Ref
	version int
	exists  bool
}

// base returns the resourceVersion for a write of the object.
func (o *object) base() string {
	if !o.exists {
		return ""
	}
	return fmt.Sprint(o.version)
}

// change is a write, or a deletion, by another client.
func (o *object) change(exists bool) {
	o.version++
	o.exists = exists
}

// write makes the manager write the object, and reports whether the brake admits it.
func (o *object) write(ctx context.Context, b *contention.Brake, desired string) error {
	end, err := b.Begin(ctx, apply.Attempt{Ref: o.ref, Desired: desired, Base: o.base()})
	if err != nil {
		return err
	}
	o.change(desired != "deleted")
	end(o.base(), nil)
	return nil
}

func newBrake(now *time.Time) *contention.Brake {
	return &contention.Brake{Limits: limits, Now: func() time.Time { return *now }}
}

// A manager that retries at the time of the error writes within bounds, however often the other client changes or
// deletes the object: the limit in the first window, and once in each further window.
func TestWritesAreBounded(t *testing.T) {
	const windows = 50
	for name, war := range map[string]struct {
		desired string
		exists  bool
	}{
		"the other client rewrites the object": {"content", true},
		"the other client deletes the object":  {"content", false},
		"the other client recreates an object": {"deleted", true},
		"the manager alternates":               {"", true},
	} {
		t.Run(name, func(t *testing.T) {
			now := start
			b, o, writes := newBrake(&now), &object{ref: thing}, 0
			for now.Before(start.Add(windows * limits.Window)) {
				o.change(war.exists)
				desired := war.desired
				if desired == "" {
					desired = fmt.Sprint(writes % 2)
				}
				err := o.write(t.Context(), b, desired)
				if err == nil {
					writes++
					now = now.Add(time.Second)
					continue
				}
				at, stopped := contention.RetryAt(err)
				if !stopped || !errors.Is(err, contention.ErrContended) {
					t.Fatal(err)
				}
				now = at
			}
			most := limits.Writes + windows
			if war.desired == "" {
				most *= 2
			}
			if writes > most || writes < windows {
				t.Errorf("%d writes in %d windows, want %d to %d", writes, windows, windows, most)
			}
		})
	}
}

// exhaust makes the brake stop the writes of a desired state.
func exhaust(t *testing.T, b *contention.Brake, o *object, desired string) error {
	t.Helper()
	for range limits.Writes + 1 {
		o.change(true)
		if err := o.write(t.Context(), b, desired); err != nil {
			return err
		}
	}
	t.Fatal("the brake never stops")
	return nil
}

func TestFirstWriteOfADesiredStateIsNeverStopped(t *testing.T) {
	now := start
	b, o := newBrake(&now), &object{ref: thing}
	for i := range 20 {
		desired := fmt.Sprint("version ", i)
		o.change(true)
		if err := o.write(t.Context(), b, desired); err != nil {
			t.Fatal(err)
		}
		_ = exhaust(t, b, o, desired+" in a war")
	}
	_ = exhaust(t, b, o, "content")
	if err := o.write(contention.WithCause(t.Context(), "the next generation"), b, "content"); err != nil {
		t.Errorf("the first write for another generation of a package: %v", err)
	}
}

// Only repeated corrections count: neither changes of the manager alone, nor writes that fail.
func TestOwnWritesDoNotCount(t *testing.T) {
	now := start
	for name, write := range map[string]func(b *contention.Brake, o *object, i int) error{
		"repeated without another client": func(
			b *contention.Brake, o *object, _ int,
		) error {
			return o.write(t.Context(), b, "content")
		},
		"created and deleted": func(b *contention.Brake, o *object, i int) error {
			return o.write(t.Context(), b, []string{"content", "deleted"}[i%2])
		},
		"created and deleted, after the API server has established the CRD": func(
			b *contention.Brake, o *object, i int,
		) error {
			if i%2 == 1 {
				o.change(true)
			}
			return o.write(t.Context(), b, []string{"content", "deleted"}[i%2])
		},
		"at the same time, of which a read shows one before it ends, and the last one ends first": func(
			b *contention.Brake, o *object, _ int,
		) error {
			first, err := b.Begin(t.Context(), apply.Attempt{Ref: o.ref, Desired: "content", Base: o.base()})
			if err != nil {
				return err
			}
			o.change(true)
			version := o.base()
			if err := o.write(t.Context(), b, "content"); err != nil {
				return err
			}
			first(version, nil)
			return nil
		},
		"failed writes": func(b *contention.Brake, o *object, _ int) error {
			o.change(true)
			end, err := b.Begin(t.Context(), apply.Attempt{Ref: o.ref, Desired: "content", Base: o.base()})
			if err == nil {
				end("", errors.New("conflict"))
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, o := newBrake(&now), &object{ref: thing}
			for i := range 10 * limits.Writes {
				if err := write(b, o, i); err != nil {
					t.Fatalf("write %d: %v", i, err)
				}
			}
		})
	}
}

// A stop is reported once, with the client that made the last change, and its error stays the same until the next
// write, so that conditions with its message are not rewritten.
func TestStopIsReportedOnce(t *testing.T) {
	now := start
	b, o, reports := newBrake(&now), &object{ref: thing}, 0
	b.Report = func(context.Context, contention.Stop) { reports++ }
	b.LastChange = func(_ context.Context, ref plan.Ref, _ string) contention.Change {
		now = now.Add(time.Second)
		return contention.Change{Writer: "other", At: now}
	}
	first := exhaust(t, b, o, "content")
	for range 100 {
		o.change(true)
		if err := o.write(t.Context(), b, "content"); err == nil || err.Error() != first.Error() {
			t.Fatalf("got %v, want %v", err, first)
		}
	}
	if reports != 1 {
		t.Errorf("%d reports, want 1", reports)
	}
	want := `another client keeps changing CustomResourceDefinition things.example.org: the field manager "other" changed it at 2030-01-01T00:00:01Z, ` +
		"after the manager had written it 3 times since 2030-01-01T00:00:00Z; the manager writes it again at 2030-01-01T00:10:00Z"
	if first.Error() != want {
		t.Errorf("got  %s\nwant %s", first, want)
	}
	now = now.Add(limits.Window)
	if err := o.write(t.Context(), b, "content"); err != nil {
		t.Errorf("after the window: %v", err)
	}
	o.change(true)
	if err := o.write(t.Context(), b, "content"); err == nil || reports != 2 {
		t.Errorf("%v, %d reports, want another stop with a report", err, reports)
	}
}

func TestObjectsAndTheirStatusesAreCountedApart(t *testing.T) {
	now := start
	b, o := newBrake(&now), &object{ref: thing}
	_ = exhaust(t, b, o, "content")
	other := &object{ref: plan.Ref{APIVersion: "v1", Kind: "Service", Namespace: "a", Name: "b"}, exists: true}
	if err := other.write(t.Context(), b, "content"); err != nil {
		t.Error(err)
	}
	if _, err := b.Begin(t.Context(), apply.Attempt{
		Ref: thing, Subresource: "status", Desired: "content", Base: "1",
	}); err != nil {
		t.Error(err)
	}
}

// The brake forgets objects that are not written any more, so a manager does not grow with its age.
func TestMemoryIsBounded(t *testing.T) {
	now := start
	b := newBrake(&now)
	write := func(name string) {
		o := &object{ref: plan.Ref{APIVersion: "v1", Kind: "Service", Name: name}, exists: true}
		if err := o.write(t.Context(), b, "content"); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 * contention.MaxObjects {
		now = now.Add(time.Microsecond)
		write(fmt.Sprint("burst-", i))
	}
	if n := b.Len(); n > contention.MaxObjects {
		t.Errorf("%d objects, want at most %d", n, contention.MaxObjects)
	}
	now = now.Add(3 * limits.Window)
	write("last")
	if n := b.Len(); n != 1 {
		t.Errorf("%d objects after an idle time, want 1", n)
	}
}

// TestStaleReadsDoNotCount checks that two parts of the manager that write the same object, and make the reads of each
// other stale, are not mistaken for another client.
func TestStaleReadsDoNotCount(t *testing.T) {
	now := start
	b, o := newBrake(&now), &object{ref: thing}
	if err := o.write(t.Context(), b, "first"); err != nil {
		t.Fatal(err)
	}
	for i := range 10 * limits.Writes {
		stale := o.base()
		if err := o.write(t.Context(), b, "second"); err != nil {
			t.Fatalf("write %d: %v", i, err)
		}
		end, err := b.Begin(t.Context(), apply.Attempt{Ref: o.ref, Desired: "first", Base: stale})
		if err != nil {
			t.Fatalf("write %d with a stale read: %v", i, err)
		}
		end("", errors.New("the object has been modified"))
		if err := o.write(t.Context(), b, "first"); err != nil {
			t.Fatalf("write %d after a stale read: %v", i, err)
		}
	}
}

// A manager that deletes an object and then reads it from a stale cache is not mistaken for another client: the object
// is still absent. An object that another client creates again counts.
func TestStaleReadsOfDeletedObjectsDoNotCount(t *testing.T) {
	now := start
	b, o := newBrake(&now), &object{ref: thing}
	o.change(true)
	stale := o.base()
	if err := o.write(t.Context(), b, "deleted"); err != nil {
		t.Fatal(err)
	}
	for i := range 10 * limits.Writes {
		end, err := b.Begin(t.Context(), apply.Attempt{Ref: o.ref, Desired: "deleted", Base: stale})
		if err != nil {
			t.Fatalf("deletion %d with a stale read: %v", i, err)
		}
		end("", errors.New("the object was not found"))
	}
	writes := 1
	for ; writes <= limits.Writes; writes++ {
		o.change(true)
		if err := o.write(t.Context(), b, "deleted"); err != nil {
			break
		}
	}
	if writes != limits.Writes {
		t.Errorf("%d deletions of an object that another client creates again, want %d", writes, limits.Writes)
	}
}
