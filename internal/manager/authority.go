package manager

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/certificates"
	"github.com/xpkg-dev/xpkg/internal/desired"
	"github.com/xpkg-dev/xpkg/internal/plan"
	"github.com/xpkg-dev/xpkg/internal/revision"
)

// authority looks after the authority of all certificates: one for the namespace, so
// that a change of it costs one look at everything, and not one for each package.
type authority struct{ *world }

func setupAuthority(mgr ctrl.Manager, w *world) error {
	if len(w.programs.used()) == 0 {
		return nil // Whatever authority there is, somebody else looks after it.
	}
	root := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		if o.GetName() != certificates.RootSecret {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}}}
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("certificates").
		WatchesMetadata(secretMetadata(), root, w.inNamespace()).
		WithOptions(options()).
		Complete(authority{w})
}

// Reconcile takes a change of authorities as far as it can go now. Where there is no
// authority, nobody has needed one yet.
func (a authority) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	root := secretMetadata()
	if err := a.live.Get(ctx, req.NamespacedName, root); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	next, err := a.certificates.Keep(ctx)
	if err != nil {
		return again(ctx, a.log, err)
	}
	return atLatest(ctrl.Result{}, next, a.now()), nil
}

// onCertificate maps a Secret to the active revision of a kind whose program has its
// certificate: one that is damaged is repaired at once, and authorities that have
// changed are told to whoever calls the program.
func (w *world) onCertificate(kind string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		list := v1.NewPackage(kind).NewRevisionList()
		if w.client.List(ctx, list, client.MatchingFields{bySecret: o.GetName()}) != nil {
			return nil
		}
		var out []reconcile.Request
		for _, rev := range list.Revisions() {
			if active(rev) {
				out = append(out, request(rev))
			}
		}
		return out
	})
}

// watchCertificates makes a change of a program's certificates a reason to look at its
// revision.
func (w *world) watchCertificates(b *builder.Builder, kind string) *builder.Builder {
	if !hasProgram(kind) {
		return b
	}
	return b.WatchesMetadata(secretMetadata(), w.onCertificate(kind), w.inNamespace())
}

// bySecret is the index of revisions by the Secrets of their certificates.
const bySecret = "spec.tlsSecretNames"

// indexSecrets makes revisions known by the Secrets of their certificates.
func indexSecrets(ctx context.Context, mgr ctrl.Manager, kind string) error {
	if !hasProgram(kind) {
		return nil
	}
	return mgr.GetFieldIndexer().IndexField(ctx, v1.NewPackage(kind).NewRevision(), bySecret, func(o client.Object) []string {
		spec := o.(v1.PackageRevision).RuntimeSpec()
		var out []string
		for _, name := range []*string{spec.TLSServerSecretName, spec.TLSClientSecretName} {
			if name != nil {
				out = append(out, *name)
			}
		}
		return out
	})
}

// settled reports whether everything that makes an API server call programs names the
// authorities: the objects of active revisions, since nobody calls the programs of
// others. An object that names those of its program's Secret does so too: they are the
// same, or somebody else issues that certificate.
func (w *world) settled(ctx context.Context, authorities []byte) (bool, error) {
	list := v1.NewPackage(v1.ProviderKind).NewRevisionList()
	if err := w.client.List(ctx, list); err != nil {
		return false, err
	}
	calling := slices.DeleteFunc(list.Revisions(), func(rev v1.PackageRevision) bool { return !active(rev) })
	var refs []plan.Ref
	for _, rev := range calling {
		refs = append(refs, revision.Objects(rev)...)
	}
	live, err := w.cluster.Metadata(ctx, refs)
	if err != nil && !apply.ErrKindNotServed.Is(err) {
		return false, err
	}
	for _, rev := range calling {
		for _, ref := range revision.Objects(rev) {
			trusts, calls := live[ref].Annotations[plan.TrustsAnnotation]
			if !calls || desired.Trusted(trusts) == desired.Fingerprint(authorities) {
				continue
			}
			own, err := w.authoritiesOf(ctx, rev)
			if err != nil {
				return false, err
			}
			if desired.Trusted(trusts) == own {
				continue
			}
			w.log.InfoContext(ctx, "the authority of certificates cannot be replaced yet: an object does not name the new one", "kind", ref.Kind, "name", ref.Name)
			return false, nil
		}
	}
	return true, nil
}

// authoritiesOf stands for the authorities in the Secret of a revision's program.
func (w *world) authoritiesOf(ctx context.Context, rev v1.PackageRevision) (string, error) {
	secret := &corev1.Secret{}
	key := types.NamespacedName{Namespace: w.namespace, Name: value(rev.RuntimeStatus().TLSServerSecretName)}
	if err := w.client.Get(ctx, key, secret); err != nil {
		return "", fmt.Errorf("read Secret %s: %w", key, err)
	}
	return desired.Fingerprint(secret.Data[certificates.KeyBundle]), nil
}
