package certificates

import (
	"context"
	"crypto/x509"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// turn is one call of Ensure.
type turn struct {
	store *Store
	want  []Requirement
	// leavesOnly is the field LeavesOnly of [Policy].
	leavesOnly bool
	// keep is whether the call is one of Keep: it reads all leaves in any case, and a missing CA stays missing.
	keep bool
	// written contains the Secrets that this call wrote, which a cache may not have yet.
	written map[string]*corev1.Secret
}

// read reads the CA and the required Secrets, and all other Secrets only if they matter.
func (t *turn) read(ctx context.Context) (*view, error) {
	v := &view{now: t.store.Now(), secrets: map[string]*corev1.Secret{}}
	if t.keep {
		return v, t.readAll(ctx, v)
	}
	names := []string{RootSecret}
	for _, w := range t.want {
		names = append(names, w.Secret)
	}
	for _, name := range names {
		secret, err := t.get(ctx, name)
		if err != nil {
			return nil, err
		}
		if secret != nil {
			v.secrets[name] = secret
		}
	}
	v.ca = readCA(v.secrets[RootSecret], v.now)
	for i, w := range t.want {
		v.leaves = append(v.leaves, readLeaf(w.Secret, v.secrets[w.Secret], &t.want[i], v.ca, v.now))
	}
	if v.lost() || !t.leavesOnly && v.changing() {
		list, err := t.list(ctx)
		if err != nil {
			return nil, err
		}
		t.addOthers(v, list)
	}
	return v, nil
}

// readAll reads the CA and all certificates in use with one request.
func (t *turn) readAll(ctx context.Context, v *view) error {
	list, err := t.list(ctx)
	if err != nil {
		return err
	}
	var root *corev1.Secret
	if i := slices.IndexFunc(list, func(s corev1.Secret) bool { return s.Name == RootSecret }); i >= 0 {
		root = &list[i]
	}
	if root = t.newer(RootSecret, root); root != nil {
		v.secrets[RootSecret] = root
	}
	v.ca = readCA(root, v.now)
	t.addOthers(v, list)
	return nil
}

func (t *turn) get(ctx context.Context, name string) (*corev1.Secret, error) {
	secret, err := t.store.get(ctx, name)
	if err != nil {
		return nil, err
	}
	return t.newer(name, secret), nil
}

// newer returns the later of a Secret that this process wrote and a Secret from a cache. Later writes of other
// clients take precedence.
func (t *turn) newer(name string, read *corev1.Secret) *corev1.Secret {
	written, ok := t.written[name]
	if !ok {
		return read
	}
	if read == nil {
		return written
	}
	order, err := resourceversion.CompareResourceVersion(read.ResourceVersion, written.ResourceVersion)
	if err == nil && order < 0 {
		return written
	}
	return read
}

// lost reports whether a CA must be created or adopted: the signing CA, or an untrusted CA of certificates in use.
func (v *view) lost() bool {
	if v.ca.Current == nil {
		return true
	}
	trusted := v.ca.Bundle(v.now)
	return v.some(func(issuer *x509.Certificate) bool { return !slices.ContainsFunc(trusted, issuer.Equal) })
}

// changing reports whether a rotation of the CA is in progress.
func (v *view) changing() bool {
	return v.ca.Current == nil || v.ca.Next != nil || len(v.ca.retired(v.now)) > 0 ||
		v.some(func(issuer *x509.Certificate) bool { return !issuer.Equal(v.ca.Current.Certificate) })
}

// some reports whether a condition holds for the issuer of any certificate that is not foreign.
func (v *view) some(is func(issuer *x509.Certificate) bool) bool {
	return slices.ContainsFunc(v.leaves, func(l Leaf) bool { return l.Certificate != nil && !l.Foreign && is(l.Issuer) })
}

// list returns the Secrets of the namespace.
func (t *turn) list(ctx context.Context) ([]corev1.Secret, error) {
	var list corev1.SecretList
	if err := t.store.Client.List(ctx, &list, client.InNamespace(t.store.Namespace)); err != nil {
		return nil, classify(err, "cannot list the Secrets in namespace %s", t.store.Namespace)
	}
	return list.Items, nil
}

// addOthers adds the certificates in use of a list of all Secrets that are not requested now.
func (t *turn) addOthers(v *view, list []corev1.Secret) {
	v.whole = true
	for i := range list {
		name := list[i].Name
		if _, known := v.secrets[name]; known {
			continue
		}
		secret := t.newer(name, &list[i])
		leaf := readLeaf(name, secret, nil, v.ca, v.now)
		if leaf.Certificate == nil || leaf.Foreign {
			continue
		}
		v.secrets[name] = secret
		v.leaves = append(v.leaves, leaf)
	}
}

// carryOut makes one write. A conflict is not an error: the next turn reads the other write.
func (t *turn) carryOut(ctx context.Context, v *view, step Step) error {
	secret, existed := v.secrets[step.Secret]
	if existed {
		secret = secret.DeepCopy()
	} else {
		secret = &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: t.store.Namespace, Name: step.Secret}, Type: corev1.SecretTypeOpaque,
		}
	}
	if err := t.store.apply(v, step, secret); err != nil {
		return err
	}
	var err error
	if existed {
		err = t.store.Client.Update(ctx, secret)
	} else {
		err = t.store.Client.Create(ctx, secret)
	}
	switch {
	case err == nil:
		t.written[step.Secret] = secret
	case moved(err) && (existed || !apierrors.IsNotFound(err)): // The namespace may not exist.
		delete(t.written, step.Secret)
	default:
		return classify(err, "cannot write Secret %s/%s", t.store.Namespace, step.Secret)
	}
	return nil
}
