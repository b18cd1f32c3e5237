package processruntime

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/runtime/deployment"
	"github.com/xpkg-dev/xpkg/internal/runtime/identity"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/internal/runtime/sandbox"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Supervisor runs processes. [sandbox.Supervisor] implements it.
type Supervisor interface {
	Ensure(ctx context.Context, spec sandbox.Spec) error
	Stop(ctx context.Context, name string) error
	Status(name string) (sandbox.Status, bool)
	Logs(ctx context.Context, name string, follow bool, tail int) (io.ReadCloser, error)
}

// Options configure a Runtime.
type Options struct {
	Supervisor Supervisor
	Images     sandbox.Images
	// Client reads and writes the objects of a runtime in the cluster. It reads single
	// objects from the API server.
	Client client.Client
	// Config has the address and the CA of the API server for runtimes. Its credentials are not
	// passed on.
	Config *rest.Config
	// Namespace is the namespace of ServiceAccounts, Services and certificates.
	Namespace string
	// Address is an address of this machine that the API server can reach. It must not be a
	// loopback address, which endpoints cannot have. If it is empty, runtimes have no Services.
	Address string
	// Privileges are the privileges that runtime configurations may use. A process ignores
	// the fields of all of them but ServiceAccount and Certificates.
	Privileges []manifests.Privilege
	// Settle is the time for which a runtime must run before it is available. Zero means
	// defaultSettle.
	Settle time.Duration
	// Now is the clock.
	Now func() time.Time
}

// defaultSettle is the default of Options.Settle.
const defaultSettle = 3 * time.Second

// Runtime runs package runtimes as processes. It implements [runtime.Runtime].
type Runtime struct {
	opts    Options
	objects *deployment.Runtime
	issuer  *identity.Issuer
	ports   assignments
	// defaultPort is the port on which providers serve webhooks that read no variable for it.
	defaultPort int

	mu sync.Mutex
	// started has the revisions whose runtimes were started and not stopped since, with their
	// packages.
	started map[key]pkg
}

// key is the kind and the name of a revision, and pkg of a package.
type (
	key struct{ kind, name string }
	pkg struct{ kind, name string }
)

var _ runtime.Runtime = (*Runtime)(nil)

// New returns a Runtime. The supervisor must not run any programs yet.
func New(o Options) *Runtime {
	o.Settle = cmp.Or(o.Settle, defaultSettle)
	return &Runtime{
		opts:    o,
		objects: &deployment.Runtime{Client: o.Client, Pods: o.Client, Namespace: o.Namespace, Privileges: o.Privileges},
		issuer:  identity.NewIssuer(o.Client, o.Config, o.Namespace, o.Now), defaultPort: manifests.ServiceNumber,
		started: map[key]pkg{},
	}
}

// Obtain unpacks the image, and checks that a process can have the features, the ServiceAccount and the
// Service of the runtime, and that the image has a program that can be started.
func (p *Runtime) Obtain(ctx context.Context, program runtime.Workload) error {
	objects, err := runtime.Manifests(program)
	if err != nil {
		return err
	}
	if p.opts.Address == "" {
		objects.Service = nil
	}
	if err := cmp.Or(
		objects.CheckProcess(), objects.CheckCertificates(p.opts.Privileges), objects.CheckMetadata(),
	); err != nil {
		return err
	}
	if err := p.objects.CheckServiceAccount(ctx, objects); err != nil {
		return err
	}
	if objects.NamesService() || !p.isStarted(program.Owner) && *objects.Deployment.Spec.Replicas > 0 {
		if err := deployment.CheckService(ctx, p.opts.Client, objects); err != nil {
			return err
		}
	}
	root, err := p.opts.Images.Image(ctx, program.Origin, program.Digest)
	if err != nil {
		return err
	}
	if root.Release != nil {
		defer root.Release()
	}
	pod := objects.Deployment.Spec.Template
	spec, err := p.commandOf(ctx, program, pod, pod.Spec.Containers[0])
	var lacks missing
	if errors.As(err, &lacks) {
		return nil // The command may depend on the missing object, for which Run waits.
	}
	if err != nil {
		return err
	}
	return sandbox.Check(root, spec)
}

// ServiceAccount implements [runtime.Runtime].
func (p *Runtime) ServiceAccount(program runtime.Workload) (string, error) {
	return runtime.AccountName(program)
}

// Run implements [runtime.Runtime].
func (p *Runtime) Run(ctx context.Context, program runtime.Workload) (runtime.State, error) {
	objects, err := runtime.Manifests(program)
	if err != nil {
		return runtime.State{}, err
	}
	restored, err := p.objects.EnsureAccount(ctx, objects)
	if err != nil {
		return runtime.State{}, err
	}
	restored = restored && p.isStarted(program.Owner)
	if *objects.Deployment.Spec.Replicas == 0 {
		_, err := p.Stop(ctx, program.Owner.Revision)
		return runtime.State{Available: err == nil}, err
	}
	l, err := p.layOut(ctx, program, objects)
	var lacks missing
	if errors.As(err, &lacks) {
		return runtime.State{Reason: reasonMissing, Message: lacks.Error(), Again: time.Second}, nil
	}
	if err != nil {
		return runtime.State{}, err
	}
	p.remember(program.Owner)
	if err := p.opts.Supervisor.Ensure(ctx, l.spec); err != nil && !errors.Is(err, sandbox.ErrProgramStart) {
		return runtime.State{}, err
	}
	state := p.state(ctx, program, l)
	if restored {
		state = runtime.State{
			Reason: runtime.ReasonAccountRestored, Message: runtime.AccountRestored(objects.ServiceAccountName),
			Again: probeInterval,
		}
	}
	if busy, err := p.Others(ctx, program.Owner); err != nil || !state.Available && len(busy) > 0 {
		// The runtime of another revision may still serve behind the Service.
		return state, err
	}
	return state, p.publish(ctx, program.Owner, objects, l.ports)
}

// isStarted reports whether the runtime of a revision was started and not stopped since.
func (p *Runtime) isStarted(who plan.Requester) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, started := p.started[key{who.Revision.Kind, who.Revision.Name}]
	return started
}

func (p *Runtime) remember(who plan.Requester) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.started[key{who.Revision.Kind, who.Revision.Name}] = pkg{who.Package.Kind, who.Package.Name}
}

// Others implements [runtime.Runtime].
func (p *Runtime) Others(_ context.Context, who plan.Requester) ([]plan.Owner, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []plan.Owner
	for revision, of := range p.started {
		if of == (pkg{who.Package.Kind, who.Package.Name}) && revision.name != who.Revision.Name {
			out = append(out, plan.Owner{APIVersion: who.Package.APIVersion, Kind: revision.kind, Name: revision.name})
		}
	}
	slices.SortFunc(out, func(a, b plan.Owner) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// Stop stops a runtime and waits until it has exited. It does not stop the runtime of a package of
// another kind with the same name.
func (p *Runtime) Stop(ctx context.Context, revision plan.Owner) (bool, error) {
	p.mu.Lock()
	_, known := p.started[key{revision.Kind, revision.Name}]
	p.mu.Unlock()
	if !known {
		return true, nil
	}
	if err := p.opts.Supervisor.Stop(ctx, runtime.ProcessName(revision)); err != nil {
		return false, err
	}
	p.mu.Lock()
	delete(p.started, key{revision.Kind, revision.Name})
	p.mu.Unlock()
	p.ports.release(runtime.ProcessName(revision))
	p.issuer.Forget(runtime.ProcessName(revision))
	return true, nil
}
