package controller

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

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
