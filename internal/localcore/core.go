package localcore

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/apis"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/certificates"
	"github.com/xpkg-dev/xpkg/internal/crossplane"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/pause"
	"github.com/xpkg-dev/xpkg/internal/restmapper"
	"github.com/xpkg-dev/xpkg/internal/runtime/identity"
	"github.com/xpkg-dev/xpkg/internal/runtime/sandbox"
	"github.com/xpkg-dev/xpkg/internal/serverside"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

const (
	// startPoll is the pause between two checks of a core that is not ready, and poll of one that is ready.
	startPoll = 100 * time.Millisecond
	poll      = 10 * time.Second
	// firstRetry and lastRetry bound the pause before core is prepared again after a failure.
	firstRetry = time.Second
	lastRetry  = 30 * time.Second
	// probeTimeout is the timeout of one readiness check.
	probeTimeout = time.Second
	// stuck is the time after which a core that is not ready is reported.
	stuck = 30 * time.Second
)

// Supervisor runs processes. [sandbox.Supervisor] implements it.
type Supervisor interface {
	Ensure(ctx context.Context, spec sandbox.Spec) error
	Stop(ctx context.Context, name string) error
	Status(name string) (sandbox.Status, bool)
}

// Image is the image of core.
type Image struct {
	Origin fetch.Origin
	Digest oci.Digest
	// Version is the version of core, or empty if it is unknown.
	Version string
}

// Options configure a core.
type Options struct {
	// Config connects to the API server as an administrator.
	Config *rest.Config
	// Namespace is the namespace of the manager.
	Namespace  string
	Image      Image
	Supervisor Supervisor
	Images     sandbox.Images
	// Args are further arguments of core.
	Args []string
	// Address is an address of this machine that the API server can reach for webhooks. Without one, core serves none.
	Address string
	Log     *slog.Logger
	Now     func() time.Time
}

// Events are the functions that Run calls.
type Events struct {
	// Ready is called with the URL of the readiness check each time that core becomes ready.
	Ready func(health string)
	// Failed is called with an error when core cannot be prepared or does not become ready. Run tries again.
	Failed func(error)
}

// Core is the Crossplane core of a local control plane.
type Core struct {
	opts         Options
	client       client.Client
	asCore       client.Client // with the identity of core
	issuer       *identity.Issuer
	certificates *certificates.Store
	listeners    listeners
}

// New returns a core, which does not run yet.
func New(o Options) (*Core, error) {
	scheme, err := apis.NewScheme()
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		corev1.AddToScheme(scheme), admissionv1.AddToScheme(scheme), discoveryv1.AddToScheme(scheme),
		rbacv1.AddToScheme(scheme),
	)
	if err != nil {
		return nil, err
	}
	c, err := client.New(o.Config, client.Options{Scheme: scheme, Mapper: restmapper.New(scheme)})
	if err != nil {
		return nil, err
	}
	impersonating := rest.CopyConfig(o.Config)
	impersonating.Impersonate = rest.ImpersonationConfig{
		UserName: crossplane.UserName(types.NamespacedName{Namespace: o.Namespace, Name: account}),
		Groups:   []string{"system:serviceaccounts", "system:authenticated"},
	}
	asCore, err := client.New(impersonating, client.Options{Scheme: scheme, Mapper: restmapper.New(scheme)})
	if err != nil {
		return nil, err
	}
	return &Core{
		opts: o, client: c, asCore: asCore, issuer: identity.NewIssuer(c, o.Config, o.Namespace, o.Now),
		certificates: &certificates.Store{Client: c, Namespace: o.Namespace, Now: o.Now, Random: rand.Reader},
	}, nil
}

// Run runs core until ctx ends. The package API and the Lock must exist. After a failure, it prepares core again.
func (c *Core) Run(ctx context.Context, e Events) {
	retry := firstRetry
	for ctx.Err() == nil {
		begin := c.opts.Now()
		err := c.run(ctx, e)
		if ctx.Err() != nil {
			return
		}
		c.opts.Log.WarnContext(ctx, "Crossplane core does not run", "error", err)
		e.Failed(err)
		if c.opts.Now().Sub(begin) > lastRetry {
			retry = firstRetry
		}
		if pause.For(ctx, retry) != nil {
			return
		}
		retry = min(2*retry, lastRetry)
	}
}

// run prepares and starts core, and maintains it until ctx ends or a step fails.
func (c *Core) run(ctx context.Context, e Events) error {
	if err := c.prepare(ctx); err != nil {
		return err
	}
	if err := c.initialize(ctx); err != nil {
		return err
	}
	ready, started, reported := false, c.opts.Now(), false
	for {
		if err := c.maintain(ctx); err != nil {
			return err
		}
		was := ready
		ready = c.isReady(ctx)
		switch {
		case ready && !was:
			c.opts.Log.InfoContext(ctx, "Crossplane core is ready", "version", c.opts.Image.Version)
			e.Ready(c.listeners.healthURL())
			reported = false
		case !ready && was:
			started = c.opts.Now()
		case !ready && !reported && c.opts.Now().Sub(started) > stuck:
			e.Failed(c.notReady(processName))
			reported = true
		}
		wait := poll
		if !ready {
			wait = startPoll
		}
		if err := pause.For(ctx, wait); err != nil {
			return err
		}
	}
}

// prepare chooses the ports and writes the objects that core needs.
func (c *Core) prepare(ctx context.Context) error {
	if c.listeners == (listeners{}) {
		var err error
		if c.listeners, err = chooseListeners(); err != nil {
			return err
		}
	}
	objects := fencedObjects(c.opts.Namespace)
	if c.opts.Address != "" {
		objects = append(objects, webhookObjects(c.opts.Namespace, c.opts.Address, c.listeners.webhook)...)
	}
	for _, o := range objects {
		if err := serverside.Apply(ctx, c.client, o, plan.FieldManager, client.ForceOwnership); err != nil {
			return fmt.Errorf("write %s %s: %w", o.GetObjectKind().GroupVersionKind().Kind, o.GetName(), err)
		}
	}
	return c.awaitFence(ctx)
}

// awaitFence waits until the API server denies core a write of a package: a policy has an effect some time after it was
// written.
func (c *Core) awaitFence(ctx context.Context) error {
	begin := c.opts.Now()
	for {
		probe := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "fence-probe"}}
		probe.Spec.Package = "xpkg.example.org/fence/probe:v1.0.0"
		err := c.asCore.Create(ctx, probe, client.DryRunAll)
		if err != nil && strings.Contains(err.Error(), crossplane.FenceName) {
			return nil
		}
		if c.opts.Now().Sub(begin) > stuck {
			return fmt.Errorf(
				"the policy %s does not deny Crossplane core a write of a package: %w", crossplane.FenceName,
				cmp.Or(err, errors.New("the API server accepts it")),
			)
		}
		if err := pause.For(ctx, startPoll); err != nil {
			return err
		}
	}
}

// initialize runs the initialization of core until it succeeds.
func (c *Core) initialize(ctx context.Context) error {
	root, err := c.opts.Images.Image(ctx, c.opts.Image.Origin, c.opts.Image.Digest)
	if err != nil {
		return err
	}
	if root.Release != nil {
		defer root.Release()
	}
	content := os.DirFS(root.Path)
	crds, err := coreCRDs(content)
	if err != nil {
		return err
	}
	webhooks, err := manifestsIn(content, webhookFolder)
	if err != nil {
		return err
	}
	files, err := c.files(ctx, initName)
	if err != nil {
		return err
	}
	spec, err := c.initSpec(files, crds, c.opts.Address != "" && len(webhooks) > 0)
	if err != nil {
		return err
	}
	begin := c.opts.Now()
	if err := c.opts.Supervisor.Ensure(ctx, spec); err != nil {
		return err
	}
	for {
		status, _ := c.opts.Supervisor.Status(initName)
		if exit := status.LastExit; exit != nil && exit.Code == 0 {
			c.issuer.Forget(initName)
			return c.opts.Supervisor.Stop(ctx, initName)
		}
		if c.opts.Now().Sub(begin) > stuck {
			return errors.Join(c.notReady(initName), c.opts.Supervisor.Stop(ctx, initName))
		}
		if err := pause.For(ctx, startPoll); err != nil {
			return err
		}
	}
}

// maintain starts core if it does not run, renews its files, and restores the fence.
func (c *Core) maintain(ctx context.Context) error {
	fenced, err := crossplane.IsFenced(ctx, c.client, types.NamespacedName{Namespace: c.opts.Namespace, Name: account})
	if err != nil {
		return fmt.Errorf("check the fence of Crossplane core: %w", err)
	}
	if !fenced {
		c.opts.Log.WarnContext(
			ctx, "another client changed the policy that denies Crossplane core writes of packages; it is restored", "policy",
			crossplane.FenceName,
		)
		if err := c.prepare(ctx); err != nil {
			return err
		}
	}
	files, err := c.files(ctx, processName)
	if err != nil {
		return err
	}
	spec, err := c.startSpec(files)
	if err != nil {
		return err
	}
	if err := c.opts.Supervisor.Ensure(ctx, spec); err != nil && !errors.Is(err, sandbox.ErrProgramStart) {
		return err
	}
	return nil
}

// files returns the files of a process of core: its identity and its certificates.
func (c *Core) files(ctx context.Context, process string) (map[string][]byte, error) {
	files, _, err := c.issuer.Files(ctx, process, account)
	if err != nil {
		return nil, err
	}
	issued, _, err := c.certificates.Issue(ctx, []certificates.Requirement{
		{Secret: serverSecret, Usage: certificates.Server, DNSNames: certificates.ServerNames(webhookName, c.opts.Namespace)},
		{Secret: clientSecret, Usage: certificates.Client, DNSNames: []string{account + "." + c.opts.Namespace}},
	})
	if err != nil {
		return nil, err
	}
	for folder, secret := range map[string]string{serverFolder: serverSecret, clientFolder: clientSecret} {
		i := issued[secret]
		files[folder+"/"+corev1.TLSCertKey], files[folder+"/"+corev1.TLSPrivateKeyKey], files[folder+"/"+
			certificates.KeyBundle] = i.Cert, i.Key, i.Bundle
	}
	return files, nil
}

// isReady reports whether the readiness check of core succeeds.
func (c *Core) isReady(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.listeners.healthURL(), nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<10)) // For the reuse of the connection only.
	return response.Body.Close() == nil && response.StatusCode == http.StatusOK
}

// notReady returns CoreNotReady with the last exit of a process of core.
func (c *Core) notReady(process string) error {
	var why error
	if status, _ := c.opts.Supervisor.Status(process); status.LastExit != nil {
		why = errors.New(status.LastExit.Reason)
	}
	what := "Crossplane core is not ready"
	if process == initName {
		what = "the initialization of Crossplane core does not succeed"
	}
	return ErrNotReady.New(why, "%s", what)
}
