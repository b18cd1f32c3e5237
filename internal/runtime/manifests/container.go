package manifests

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// container sets the defaults of the runtime container. An image in the configuration
// wins: the administrator chose it.
func (in Input) container(c *corev1.Container) {
	if c.Image == "" {
		c.Image = in.Image
	}
	c.ImagePullPolicy = in.pullPolicy(c.ImagePullPolicy)
	if c.SecurityContext == nil {
		c.SecurityContext = &corev1.SecurityContext{
			RunAsUser: new(int64(user)), RunAsGroup: new(int64(user)), RunAsNonRoot: new(true),
			AllowPrivilegeEscalation: new(false), Privileged: new(false),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		}
	}
	if in.ExplainsExit && c.TerminationMessagePolicy == "" {
		c.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
	}
	addPort(c, metricsPort, MetricsNumber)
	if in.kind() == v1.FunctionKind {
		addPort(c, GRPCPort, ServiceNumber)
	} else {
		addPort(c, WebhookPort, ServiceNumber)
	}
	setEnv(c, in.environment())
}

// pullPolicy returns the pull policy of the package, which wins over the one in the
// configuration. IfNotPresent is the exception: it is the default of every package, so
// the configuration wins over it.
func (in Input) pullPolicy(configured corev1.PullPolicy) corev1.PullPolicy {
	if in.PullPolicy != "" && in.PullPolicy != corev1.PullIfNotPresent {
		return in.PullPolicy
	}
	return cmp.Or(configured, corev1.PullIfNotPresent)
}

// addPort adds a port unless the container already has one with that name. A
// configuration can thereby move the runtime to another port.
func addPort(c *corev1.Container, name string, number int32) {
	if portOf(c, name) == 0 {
		c.Ports = append(c.Ports, corev1.ContainerPort{Name: name, ContainerPort: number})
	}
}

// portOf returns the number of a port, or zero.
func portOf(c *corev1.Container, name string) int32 {
	for _, p := range c.Ports {
		if p.Name == name {
			return p.ContainerPort
		}
	}
	return 0
}

// environment returns the environment variables of the runtime. A variable may only refer
// to earlier ones.
func (in Input) environment() []corev1.EnvVar {
	revision := []corev1.EnvVar{
		fromField("REVISION_NAME", label(v1.LabelRevision)),
		{Name: "REVISION_UID", Value: string(in.Owner.Revision.UID)},
	}
	if in.kind() == v1.FunctionKind {
		return slices.Concat(
			[]corev1.EnvVar{fromField("FUNCTION_NAME", label(v1.LabelFunction))}, revision, in.certificateEnvironment(),
		)
	}
	return slices.Concat([]corev1.EnvVar{
		fromField("POD_NAMESPACE", "metadata.namespace"),
		fromField("PROVIDER_NAME", label(v1.LabelProvider)),
	}, revision, in.certificateEnvironment())
}

func label(key string) string { return "metadata.labels['" + key + "']" }

func fromField(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{
		FieldPath: path,
	}}}
}

// setEnv appends variables to the ones of the configuration. It removes earlier variables
// with the same names, because the API server does not reject duplicates.
func setEnv(c *corev1.Container, variables []corev1.EnvVar) {
	ours := func(e corev1.EnvVar) bool {
		return slices.ContainsFunc(variables, func(v corev1.EnvVar) bool { return v.Name == e.Name })
	}
	c.Env = append(slices.DeleteFunc(c.Env, ours), variables...)
}
