package certificates

import (
	"context"
	"errors"
	"io"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Defaults of a [Store].
const (
	defaultLeafValidity      = 90 * 24 * time.Hour
	defaultAuthorityValidity = 10 * 365 * 24 * time.Hour
	defaultOverlap           = 24 * time.Hour
)

// Store keeps certificates in the Secrets of a namespace. Several stores can work on the same namespace
// concurrently.
type Store struct {
	// Client reads and writes Secrets. It may read from a cache; a stale cache costs further attempts.
	Client    client.Client
	Namespace string
	Now       func() time.Time
	Random    io.Reader

	// LeafValidity and AuthorityValidity are the validity of certificates, and Overlap is the overlap of [Policy].
	// Zero selects the default.
	LeafValidity, AuthorityValidity, Overlap time.Duration
	// Settled reports whether all users outside of the Secrets have loaded their content: the caBundle fields of
	// webhooks and CRDs contain the bundle, and runtimes that read their files once have restarted. A rotation of the
	// CA waits for it in addition to the overlap. If it is nil, the rotation waits only for the overlap.
	Settled func(ctx context.Context, bundle []byte) (bool, error)
}

// Ensure writes the Secrets until the requested certificates exist, are valid and are trusted, and advances a
// rotation of the CA as far as possible. It returns the certificates, and the time of the next call if no Secret
// changes before.
//
// It returns all other certificates together with an error with the code CertificateSecretTaken or
// CertificateNotReady for Secrets that it must not write and cannot use, and with the error of Settled. It fails with
// CertificatesContended if other clients keep writing the same Secrets, and with AuthorityUnusable if the CA cannot
// sign a requested certificate.
func (s *Store) Ensure(ctx context.Context, want []Requirement) (map[string]Issued, time.Time, error) {
	return s.ensure(ctx, turn{store: s, want: want, written: map[string]*corev1.Secret{}})
}

// Keep is like Ensure for all existing certificates: it advances a rotation of the CA as far as possible and
// writes the bundle into every Secret. It does nothing if the CA Secret does not exist: no runtime has needed a
// certificate yet, or the next call of Issue creates it. It requires one list and the writes.
func (s *Store) Keep(ctx context.Context) (time.Time, error) {
	_, next, err := s.ensure(ctx, turn{store: s, keep: true, written: map[string]*corev1.Secret{}})
	return next, err
}

// Issue is like Ensure for a single user of certificates. It leaves rotations of the CA to Keep, and
// therefore reads only the requested Secrets and the CA Secret. It reads all Secrets only if the CA was lost.
// The time is zero if no step becomes due.
func (s *Store) Issue(ctx context.Context, want []Requirement) (map[string]Issued, time.Time, error) {
	return s.ensure(ctx, turn{store: s, want: want, leavesOnly: true, written: map[string]*corev1.Secret{}})
}

func (s *Store) ensure(ctx context.Context, work turn) (map[string]Issued, time.Time, error) {
	// Conflicts with concurrent writers require a few turns; a rotation of the CA requires more.
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
	return nil, time.Time{}, ErrContended.New(nil, "cannot maintain the certificates in namespace %s", s.Namespace)
}

// Bundle returns the CA certificates that are trusted now, in PEM, for the caBundle of webhooks. It contains no
// server certificates, so it changes only with the CAs.
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

// plan calls Settled only if no other step is due.
func (t *turn) plan(ctx context.Context, v *view) ([]Step, time.Time, error) {
	s := t.store
	if t.keep && v.secrets[RootSecret] == nil {
		return nil, time.Time{}, nil
	}
	policy := Policy{Overlap: orDefault(s.Overlap, defaultOverlap), Settled: s.Settled == nil, LeavesOnly: t.leavesOnly}
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

// get returns nil for a Secret that does not exist.
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

// view is the content of the Secrets when they were read.
type view struct {
	now     time.Time
	ca      CA
	secrets map[string]*corev1.Secret
	leaves  []Leaf
	// whole reports whether the leaves are all leaves in use, and not only the requested ones.
	whole bool
}

func (v *view) issued() map[string]Issued {
	out := map[string]Issued{}
	for _, l := range v.leaves {
		if l.Required != nil && l.Certificate != nil && !l.Taken {
			data := maps.Clone(v.secrets[l.Secret].Data)
			out[l.Secret] = Issued{Cert: data[KeyCertificate], Key: data[keyPrivate], Bundle: data[KeyBundle]}
		}
	}
	return out
}

// refusals returns errors for the requested certificates that only another program can provide.
func (v *view) refusals() error {
	var all []error
	var taken []string
	for _, l := range v.leaves {
		switch {
		case l.Required == nil:
		case l.Holder != "":
			all = append(
				all, ErrSecretTaken.New(nil, "cannot put a certificate into Secret %s, which belongs to %s", l.Secret, l.Holder),
			)
		case l.Taken:
			taken = append(taken, l.Secret)
		case l.Foreign && l.Certificate == nil:
			all = append(all, ErrNotReady.New(errors.New(l.Fault), "the certificate in Secret %s cannot be used", l.Secret))
		}
	}
	if len(taken) > 0 {
		all = append(all, ErrSecretTaken.New(
			nil, "cannot put a certificate into Secret %s, which has other content", strings.Join(taken, " and "),
		))
	}
	if len(all) == 1 {
		return all[0]
	}
	return errors.Join(all...)
}
