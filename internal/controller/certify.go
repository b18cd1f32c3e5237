package controller

import (
	"cmp"
	"context"
	"crypto/rand"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/certificates"
	"github.com/xpkg-dev/xpkg/internal/controller/rootca"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// newCertificates keeps the certificates of programs.
func newCertificates(o Options, w *world) *certificates.Store {
	return &certificates.Store{
		Client: w.client, Namespace: w.namespace, Now: w.now, Random: rand.Reader,
		Overlap: o.CertificateOverlap,
		Settled: rootca.Distribution{Client: w.client, Cluster: w.cluster, Namespace: w.namespace, Log: w.log}.IsComplete,
	}
}

// trust is what is known of the certificates of a program.
type trust struct {
	// authorities are those by which others know the program, in PEM; none where there
	// is no program.
	authorities []byte
	// service is where the program answers.
	service desired.Service
	// due is when to look again; zero for never.
	due time.Time
}

// certify sees to it that the program of a revision has its certificates.
func (r *revisionReconciler) certify(ctx context.Context, f family, j *job) (trust, error) {
	if j == nil {
		return trust{}, nil
	}
	objects, err := runtime.Shape(j.program)
	if err != nil {
		return trust{}, failedProgram(err)
	}
	service := desired.Service{Name: objects.Service.Name, Namespace: objects.Service.Namespace}
	here := r.programs.choice.Of(r.kind, f.pkg.GetName()) == runtime.Process
	issued, due, err := r.certificates.Issue(ctx, wanted(&j.program, service.Name, here))
	status := f.rev.RuntimeStatus()
	status.TLSServerSecretName, status.TLSClientSecretName = named(issued, j.program.ServerSecret), named(issued, j.program.ClientSecret)
	server := issued[j.program.ServerSecret]
	if r.kind == v1.FunctionKind {
		j.program.Certificates = desired.Fingerprint(slices.Concat(server.Cert, server.Bundle))
	}
	return trust{server.Bundle, service, due}, failedProgram(err)
}

// named is the name of a Secret that there is.
func named(issued map[string]certificates.Issued, secret string) *string {
	if _, ok := issued[secret]; ok {
		return &secret
	}
	return nil
}

// wanted are the certificates of a program. A revision that another package manager
// made may not name their Secrets; the program gets the usual ones. Here says that it runs
// as a process of this machine.
func wanted(p *runtime.Program, service string, here bool) []certificates.Want {
	pkg := p.Owner.Package.Name
	names := certificates.ServerNames(pkg, p.Namespace)
	if service != pkg {
		names = append(names, certificates.ServerNames(service, p.Namespace)...)
	}
	if here {
		// A process of this machine has no name in the cluster for who calls it.
		names = append(names, "localhost")
	}
	owners := ownersOf(p.Owner)
	p.ServerSecret = cmp.Or(p.ServerSecret, v1.TLSServerSecretName(pkg))
	want := []certificates.Want{{Secret: p.ServerSecret, Usage: certificates.Server, DNSNames: names, Owners: owners}}
	if p.Owner.Package.Kind == v1.ProviderKind {
		p.ClientSecret = cmp.Or(p.ClientSecret, v1.TLSClientSecretName(pkg))
		want = append(want, certificates.Want{Secret: p.ClientSecret, Usage: certificates.Client, DNSNames: []string{p.Owner.Revision.Name}, Owners: owners})
	}
	return want
}

// ownersOf are the owners of what the revisions of a package share: it goes with the
// package.
func ownersOf(who plan.Requester) []metav1.OwnerReference {
	return []metav1.OwnerReference{who.Revision.Reference(true), who.Package.Reference(false)}
}
