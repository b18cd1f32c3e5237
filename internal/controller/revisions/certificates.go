package revisions

import (
	"cmp"
	"context"
	"slices"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/certificates"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/pkg/desired"
)

// ensureCertificates issues and renews the certificates of the runtime of a revision, and sets the
// service and the CA bundle of the webhooks and conversions that call the runtime.
func (r *Reconciler) ensureCertificates(ctx context.Context, in *reconciliation) error {
	if in.workload == nil {
		in.objects.SetWebhookService(desired.Service{}, nil)
		return nil
	}
	p := &in.workload.spec
	objects, err := runtime.Manifests(*p)
	if err != nil {
		return asRuntimeError(err)
	}
	service := desired.Service{Name: objects.Service.Name, Namespace: objects.Service.Namespace}
	local := r.Runtimes.Choice.Of(r.Kind, in.Package.GetName()) == runtime.Process
	issued, renewal, err := r.Runtimes.Certificates.Issue(ctx, wantedCertificates(p, service.Name, local))
	status := in.Revision.RuntimeStatus()
	status.TLSServerSecretName, status.TLSClientSecretName = secretName(issued, p.ServerSecret),
		secretName(issued, p.ClientSecret)
	server := issued[p.ServerSecret]
	if r.Kind == v1.FunctionKind {
		p.Certificates = desired.CABundleHash(slices.Concat(server.Cert, server.Bundle))
	}
	if err != nil {
		return asRuntimeError(err)
	}
	in.objects.SetWebhookService(service, server.Bundle)
	in.requeueAt(renewal, r.API.Now())
	return nil
}

// secretName returns the name of a Secret whose certificate was issued, and nil for others.
func secretName(issued map[string]certificates.Issued, secret string) *string {
	if _, ok := issued[secret]; ok {
		return &secret
	}
	return nil
}

// wantedCertificates returns the certificates that a runtime needs. It sets the names of their
// Secrets in p if the revision names none, because another package manager created it. A local
// runtime is a process on this machine, which its callers reach as localhost.
func wantedCertificates(p *runtime.Workload, service string, local bool) []certificates.Requirement {
	pkg := p.Owner.Package.Name
	names := certificates.ServerNames(pkg, p.Namespace)
	if service != pkg {
		names = append(names, certificates.ServerNames(service, p.Namespace)...)
	}
	if local {
		names = append(names, "localhost")
	}
	p.ServerSecret = cmp.Or(p.ServerSecret, v1.TLSServerSecretName(pkg))
	want := []certificates.Requirement{{
		Secret: p.ServerSecret, Usage: certificates.Server, DNSNames: names, Owner: p.Owner,
	}}
	if p.Owner.Package.Kind == v1.ProviderKind {
		p.ClientSecret = cmp.Or(p.ClientSecret, v1.TLSClientSecretName(pkg))
		want = append(want, certificates.Requirement{
			Secret: p.ClientSecret, Usage: certificates.Client, DNSNames: []string{p.Owner.Revision.Name}, Owner: p.Owner,
		})
	}
	return want
}
