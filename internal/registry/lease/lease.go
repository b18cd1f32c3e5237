// Package lease selects one of several servers that can all write to a repository, with nothing but an OCI registry.
//
// The holder of the lease is recorded in the manifest of a tag, which it replaces before half of its time has passed. No clock is
// compared with that of another machine: the holder counts its time from before it wrote the record, and other servers count from when
// they first saw it. Registries cannot replace a tag on a condition. A server that claims a lease that has ended therefore waits for
// the time in which every other server that saw the same record completes or gives up its own claim, and then reads which claim
// remained: the last one.
//
// The time of the lease limits what a holder may write, and everything it writes must end before. A registry that applies a request
// long after the client has given up can still overwrite; the holder has to notice that and to write its own state again.
package lease

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

const (
	// Duration is the time for which a lease is valid unless it is renewed.
	Duration = 3 * time.Minute
	// requestTime limits the requests of one call.
	requestTime = 5 * time.Second
	// DefaultSettle is the time between a claim and its confirmation. The reads and the write of another server that saw the same record
	// end within requestTime of its read, which was before the claim was visible, and the claim is visible within requestTime.
	DefaultSettle = 3 * requestTime
)

// Lease is the view of one server. It is not safe for concurrent use.
type Lease struct {
	// Client accesses the registry, and Ref is the tag of the record.
	Client *remote.Client
	Ref    oci.Reference
	// Now returns the time.
	Now func() time.Time
	// Settle replaces DefaultSettle if it is not zero. A shorter time is unsafe.
	Settle time.Duration

	holder string
	serial int
	// own is the record that this server has written, which is valid from granted on; zero if there is none.
	own     oci.Digest
	granted time.Time
	// claimed is the time of a claim that is not confirmed yet.
	claimed   time.Time
	confirmed bool
	// seen is the record of another server, which has not changed between the times since and looked.
	seen          oci.Digest
	since, looked time.Time
}

// Hold claims or renews the lease, and returns the time for which this server holds it; zero if it does not. A claim is confirmed by a
// later call, from the time Wait returns on.
func (l *Lease) Hold(ctx context.Context) (time.Duration, error) {
	bounded, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	current, isFree, err := l.read(bounded)
	switch {
	case err != nil:
		return 0, err
	case !l.own.IsZero() && current == l.own:
		return l.keep(bounded)
	}
	l.own, l.confirmed = oci.Digest{}, false
	if !isFree && !l.hasEnded(current) {
		return 0, nil
	}
	return 0, l.claim(bounded)
}

// Wait returns the time until a claim can be confirmed; zero if there is none.
func (l *Lease) Wait() time.Duration {
	if l.own.IsZero() || l.confirmed {
		return 0
	}
	return max(time.Millisecond, l.settle()-shorter(l.Now(), l.claimed))
}

// Release ends the lease if this server holds it, so that another one can claim it at once.
func (l *Lease) Release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	current, _, err := l.read(ctx)
	if err != nil || !l.confirmed || current != l.own {
		return err
	}
	l.own, l.confirmed = oci.Digest{}, false
	return l.write(ctx, record{Free: true})
}

// keep continues a lease whose record is that of this server.
func (l *Lease) keep(ctx context.Context) (time.Duration, error) {
	if Duration-longer(l.Now(), l.granted) < 2*requestTime {
		// Another server could claim the lease before this one has renewed it.
		return 0, l.claim(ctx)
	}
	if !l.confirmed && shorter(l.Now(), l.claimed) < l.settle() {
		return 0, nil
	}
	l.confirmed = true
	if longer(l.Now(), l.granted) > Duration/2 {
		if err := l.renew(ctx); err != nil {
			return 0, err
		}
	}
	return max(0, Duration-longer(l.Now(), l.granted)), nil
}

// renew writes the next record. The lease is valid from before the write on.
func (l *Lease) renew(ctx context.Context) error {
	start := l.Now()
	next := l.next()
	if err := l.write(ctx, next); err != nil {
		return err
	}
	l.own, l.granted = next.artifact().Root().Digest, start
	return nil
}

// claim writes a record in place of one that has ended. It is confirmed later.
func (l *Lease) claim(ctx context.Context) error {
	if l.holder == "" {
		l.holder = rand.Text()
	}
	next := l.next()
	// The write can succeed although it fails for this server.
	l.own, l.granted, l.confirmed = next.artifact().Root().Digest, l.Now(), false
	l.claimed = l.granted
	return l.write(ctx, next)
}

// serials is the number of different records of a server. A registry keeps all of them, so they are used again.
const serials = 16

func (l *Lease) next() record {
	l.serial = (l.serial + 1) % serials
	return record{Holder: l.holder, Serial: l.serial}
}

// hasEnded reports whether the record of another server has not changed for the time of a lease. A record can be used again, so it
// must be seen more often than that.
func (l *Lease) hasEnded(current oci.Digest) bool {
	now := l.Now()
	if current != l.seen || longer(now, l.looked) >= Duration {
		l.seen, l.since = current, now
	}
	l.looked = now
	return shorter(now, l.since) >= Duration
}

func (l *Lease) settle() time.Duration {
	if l.Settle != 0 {
		return l.Settle
	}
	return DefaultSettle
}

// read returns the digest of the record, and whether no server holds the lease.
func (l *Lease) read(ctx context.Context) (current oci.Digest, isFree bool, err error) {
	a, err := l.Client.Artifact(ctx, l.Ref)
	if errors.Is(err, remote.ErrTagNotFound) || errors.Is(err, remote.ErrRepositoryNotFound) {
		return oci.Digest{}, true, nil
	}
	if err != nil {
		return oci.Digest{}, false, err
	}
	r, err := readRecord(ctx, a)
	return a.Root().Digest, r.Free, err
}

func (l *Lease) write(ctx context.Context, r record) error {
	_, err := l.Client.Push(ctx, l.Ref, r.artifact())
	return err
}

// longer and shorter return the time between two times by the clock that ran more, or less: one of them stops while a machine sleeps, and
// the other one can be set.
func longer(now, then time.Time) time.Duration {
	return max(now.Sub(then), now.Round(0).Sub(then.Round(0)))
}

func shorter(now, then time.Time) time.Duration {
	return min(now.Sub(then), now.Round(0).Sub(then.Round(0)))
}
