package processruntime

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/internal/runtime/sandbox"
)

// layout describes the process of a runtime.
type layout struct {
	spec  sandbox.Spec
	ports assigned
	// renew is the time at which the token must be renewed.
	renew time.Time
	// settle is the time for which the process must run before it is available.
	settle time.Duration
}

// layOut derives the process from the Deployment of a runtime. It fails with missing if an
// object does not exist yet.
func (p *Runtime) layOut(ctx context.Context, program runtime.Workload, o manifests.Objects) (layout, error) {
	pod := o.Deployment.Spec.Template
	if err := cmp.Or(o.CheckProcess(), o.CheckCertificates(p.opts.Privileges)); err != nil {
		return layout{}, err
	}
	files, err := p.volumes(ctx, pod.Spec)
	if err != nil {
		return layout{}, err
	}
	who := program.Owner
	account, renew, err := p.issuer.Files(ctx, runtime.ProcessName(who.Revision), o.ServiceAccountName)
	if apierrors.IsNotFound(err) {
		return layout{},
			missing("the runtime needs the ServiceAccount " + o.ServiceAccountName + ", which does not exist yet")
	}
	if err != nil {
		return layout{}, err
	}
	maps.Copy(files, account)
	c := pod.Spec.Containers[0]
	ports, err := p.ports.of(runtime.ProcessName(who.Revision), who.Package.Kind)
	if err != nil {
		return layout{}, sandbox.ErrProgramStart.New(err, "cannot find free ports for %s", who.Revision.Name)
	}
	more := ports.follow(&c, who.Package.Kind)
	spec, err := p.commandOf(ctx, program, pod, c)
	if err != nil {
		return layout{}, err
	}
	spec.MoreArgs, spec.Files, spec.Ports, spec.Memory = more, files, ports.relocated(), c.Resources.Limits.Memory().
		Value()
	settle := cmp.Or(time.Duration(o.Deployment.Spec.MinReadySeconds)*time.Second, p.opts.Settle)
	return layout{ports: ports, renew: renew, settle: settle, spec: spec}, nil
}

// commandOf returns the process of a container with its command, arguments and environment. It
// fails with missing if an object does not exist yet.
func (p *Runtime) commandOf(
	ctx context.Context, program runtime.Workload, pod corev1.PodTemplateSpec, c corev1.Container,
) (sandbox.Spec, error) {
	revision := program.Owner.Revision
	variables, err := p.issuer.Variables()
	if err != nil {
		return sandbox.Spec{}, err
	}
	env, err := p.environment(ctx, c, p.fields(pod, revision.Name, string(revision.UID)), variables)
	return sandbox.Spec{
		Name: runtime.ProcessName(revision), Origin: program.Origin, Digest: program.Digest,
		Command: expandAll(c.Command, env), Args: expandAll(c.Args, env), Env: env, Restart: program.Restart,
	}, err
}

// follow sets the ports of a container, except for ports that its configuration sets. It
// returns the arguments that set the port of a function, which follow the arguments of the
// image.
func (a *assigned) follow(c *corev1.Container, kind string) (more []string) {
	for _, e := range a.environment(kind) {
		i := slices.IndexFunc(c.Env, func(have corev1.EnvVar) bool { return have.Name == e.Name })
		if i < 0 {
			c.Env = append(c.Env, e)
			continue
		}
		a.learn(c.Env[i])
	}
	named := manifests.WebhookPort
	if kind == v1.FunctionKind {
		named = manifests.GRPCPort
	}
	for _, port := range c.Ports {
		if port.Name == named && port.ContainerPort != manifests.ServiceNumber {
			// A configuration that moves a port also configures the runtime.
			a.serving = int(port.ContainerPort)
			return nil
		}
	}
	if kind == v1.FunctionKind && a.serving != manifests.ServiceNumber && !hasFlag(c.Args, addressFlag) {
		return []string{addressFlag + "=:" + strconv.Itoa(a.serving)}
	}
	return nil
}

// learn takes over a port from a variable of the configuration. The port is 0 if the value contains
// no number.
func (a *assigned) learn(e corev1.EnvVar) {
	number, err := strconv.Atoi(e.Value[strings.LastIndex(e.Value, ":")+1:])
	if err != nil {
		number = 0
	}
	switch e.Name {
	case metricsVariable:
		a.metrics = number
	case healthVariable:
		a.health = number
	case webhookVariable:
		a.serving = number
	}
}

func hasFlag(args []string, flag string) bool {
	return slices.ContainsFunc(args, func(a string) bool { return a == flag || strings.HasPrefix(a, flag+"=") })
}
