package certificates

import (
	"context"
	"errors"
	"io"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Defaults of a [Store].
const (
	DefaultLeafValidity      = 90 * 24 * time.Hour
	DefaultAuthorityValidity = 10 * 365 * 24 * time.Hour
	DefaultOverlap           = 24 * time.Hour
)

// Store keeps certificates in the Secrets of a namespace. Any number of them can
// work on the same namespace at once.
type Store struct {
	// Client reads and writes Secrets. One that reads from a cache works, and may
	// need another attempt when the cache is behind.
	Client    client.Client
	Namespace string
	Now       func() time.Time
	Random    io.Reader

	// LeafValidity and AuthorityValidity are how long certificates are valid, and
	// Overlap is that of [Policy]. Zero is the default.
	LeafValidity, AuthorityValidity, Overlap time.Duration
	// Settled reports whether everything outside of the Secrets uses what is in them:
	// the caBundle fields of webhooks and definitions, which have to hold the bundle,
	// and programs that read their files once. A change of authorities waits for it
	// beside the Overlap. Nil, it waits for the Overlap alone.
	Settled func(ctx context.Context, bundle []byte) (bool, error)
}

// Ensure sees to it that the wanted certificates are there, valid and trusted, and
// takes a change of authorities as far as it can go now. It gives the
// certificates, and when to call it again if nothing happens before.
//
// It fails with CertificateSecretTaken or CertificateNotReady for Secrets that it may
// not write and cannot use, or when Settled fails, and gives all others
// nevertheless; with CertificatesContended when others write the same Secrets all
// the time; and with AuthorityUnusable for an authority that cannot sign what is
// wanted.
func (s *Store) Ensure(ctx context.Context, want []Want) (map[string]Issued, time.Time, error) {
	return s.ensure(ctx, turn{store: s, want: want, written: map[string]*corev1.Secret{}})
}

// Keep is Ensure for everything that is there: it takes a change of authorities as far
// as it can go now, and brings what is trusted into every Secret, whoever asked for it.
// It makes an authority where there is none. One list and what it writes is all that it
// costs.
func (s *Store) Keep(ctx context.Context) (time.Time, error) {
	_, next, err := s.ensure(ctx, turn{store: s, all: true, written: map[string]*corev1.Secret{}})
	return next, err
}

// Issue is Ensure for one of many: it leaves changes of authorities to Keep, and so
// reads the wanted Secrets and that of the authority, and no others, however many there
// are. Only where an authority was lost does it look at all of them. The time is zero
// when nothing becomes due.
func (s *Store) Issue(ctx context.Context, want []Want) (map[string]Issued, time.Time, error) {
	return s.ensure(ctx, turn{store: s, want: want, leavesOnly: true, written: map[string]*corev1.Secret{}})
}

func (s *Store) ensure(ctx context.Context, work turn) (map[string]Issued, time.Time, error) {
	// Who fills the Secrets at the same time wins or loses single writes; that
	// takes a few turns, and a change of authorities some more.
	const turns = 30
	for range turns {
		v, err := work.read(ctx)
		if err != nil {
			return nil, time.Time{}, err
		}
		steps, next, err := work.plan(ctx, v)
		if err != nil {
			return v.issued(), v.now.Add(settleInterval), err
		}
		if len(steps) == 0 {
			return v.issued(), next, v.refusals()
		}
		for _, step := range steps {
			if err := work.carryOut(ctx, v, step); err != nil {
				return nil, time.Time{}, err
			}
		}
	}
	return nil, time.Time{}, ErrContended.New(nil, "cannot keep the certificates in namespace %s", s.Namespace)
}

// Bundle gives the authorities that are trusted now, in PEM: what goes into the
// caBundle of webhooks. It has authorities only, never the certificate of a server,
// so it changes only with them.
func (s *Store) Bundle(ctx context.Context) ([]byte, error) {
	for _, ensure := range []bool{true, false} {
		secret, err := s.get(ctx, RootSecret)
		if err != nil {
			return nil, err
		}
		if ca := readCA(secret, s.Now()); ca.Current != nil || !ensure {
			return bundlePEM(ca.Bundle(s.Now())), nil
		}
		if _, _, err := s.Ensure(ctx, nil); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// plan asks whether everybody has settled when nothing else is left to do.
func (t *turn) plan(ctx context.Context, v *view) ([]Step, time.Time, error) {
	s := t.store
	policy := Policy{Overlap: orDefault(s.Overlap, DefaultOverlap), Settled: s.Settled == nil, LeavesOnly: t.leavesOnly}
	steps, next := Plan(v.now, v.ca, v.leaves, policy)
	if len(steps) > 0 || policy.Settled || policy.LeavesOnly || !v.whole || !v.changing() {
		return steps, next, nil
	}
	var err error
	if policy.Settled, err = s.Settled(ctx, bundlePEM(v.ca.Bundle(v.now))); err != nil {
		return nil, time.Time{}, err
	}
	steps, next = Plan(v.now, v.ca, v.leaves, policy)
	return steps, next, nil
}

func orDefault(d, standard time.Duration) time.Duration {
	if d == 0 {
		return standard
	}
	return d
}

// get is nil for a Secret that is not there.
func (s *Store) get(ctx context.Context, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := s.Client.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: name}, secret)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, classify(err, "cannot read Secret %s/%s", s.Namespace, name)
	}
	return secret, nil
}

// view is what the Secrets held when they were read.
type view struct {
	now     time.Time
	ca      CA
	secrets map[string]*corev1.Secret
	leaves  []Leaf
	// whole says that the leaves are all that are in use, and not only the wanted.
	whole bool
}

func (v *view) issued() map[string]Issued {
	out := map[string]Issued{}
	for _, l := range v.leaves {
		if l.Want != nil && l.Certificate != nil && !l.Taken {
			data := maps.Clone(v.secrets[l.Secret].Data)
			out[l.Secret] = Issued{Cert: data[KeyCertificate], Key: data[KeyPrivate], Bundle: data[KeyBundle]}
		}
	}
	return out
}

// refusals are the wanted certificates that somebody else would have to see to.
func (v *view) refusals() error {
	var all []error
	for _, l := range v.leaves {
		switch {
		case l.Want == nil:
		case l.Taken:
			all = append(all, ErrSecretTaken.New(nil, "cannot put a certificate into Secret %s", l.Secret))
		case l.Foreign && l.Certificate == nil:
			all = append(all, ErrNotReady.New(errors.New(l.Fault), "the certificate in Secret %s cannot be used", l.Secret))
		}
	}
	return errors.Join(all...)
}
