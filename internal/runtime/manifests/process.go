package manifests

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// ErrNotForProcesses is the code for a runtime configuration that needs a feature that only nodes
// provide.
var ErrNotForProcesses = errcode.Code{
	Name: "NotForProcesses", Class: errcode.Unsupported,
	Cause: "The runtime configuration of a package requires something that a process of this machine cannot have, such as a second container or a volume of a cluster.",
	Fix:   "Remove the setting in the message, or use the runtime Deployment on a cluster.",
}

// CheckProcess fails with NotForProcesses if the pod of a runtime uses a feature that a process
// cannot have. It ignores settings of scheduling and probes.
func (o Objects) CheckProcess() error {
	feature := clusterFeature(o.Deployment.Spec.Template.Spec)
	if feature == "" {
		return nil
	}
	do := "Remove this from the DeploymentRuntimeConfig or ControllerConfig of the package, or run the package on a cluster with the runtime Deployment."
	if o.Owner.Package.Namespace != "" {
		do = "Install the package on a cluster whose manager runs Deployments, such as one with the manager of `xpkg bootstrap --first-generation --apply`."
	}
	return ErrNotForProcesses.New(nil, "the runtime configuration of %s/%s has %s, which a process cannot have",
		strings.ToLower(o.Owner.Package.Kind), o.Owner.Package.Name, feature).WithDo("%s", do)
}

// clusterFeature returns a feature of a pod that only a node can provide, or "".
func clusterFeature(pod corev1.PodSpec) string {
	if len(pod.InitContainers) > 0 {
		return "the init container " + pod.InitContainers[0].Name
	}
	if len(pod.Containers) > 1 {
		return "the second container " + pod.Containers[1].Name
	}
	c := pod.Containers[0]
	for _, m := range c.VolumeMounts {
		if feature := volumeFeature(pod, m); feature != "" {
			return feature
		}
	}
	for _, from := range c.EnvFrom {
		if from.SecretRef == nil && from.ConfigMapRef == nil {
			return "variables from a source other than a Secret or ConfigMap"
		}
	}
	for _, e := range c.Env {
		if from := e.ValueFrom; from != nil && from.FieldRef == nil && from.SecretKeyRef == nil &&
			from.ConfigMapKeyRef == nil {
			return fmt.Sprintf("the variable %s with a value from a source other than a field, Secret or ConfigMap", e.Name)
		}
	}
	return ""
}

func volumeFeature(pod corev1.PodSpec, m corev1.VolumeMount) string {
	var v corev1.Volume
	for _, have := range pod.Volumes {
		if have.Name == m.Name {
			v = have
		}
	}
	switch {
	case v.Secret != nil, v.ConfigMap != nil:
		if m.SubPathExpr != "" {
			return fmt.Sprintf("the volume %s mounted by subPathExpr", m.Name)
		}
		return ""
	case v.EmptyDir != nil && (m.MountPath == "/tmp" || m.MountPath == "/dev/shm"):
		return ""
	}
	return fmt.Sprintf("the volume %s, which is neither a Secret nor a ConfigMap", m.Name)
}
