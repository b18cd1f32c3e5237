package firstgen

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xpkg-dev/xpkg/pkg/runtimedefaults"
)

// convertRuntime sets the image and the default configuration of the runtime.
func (c *Conversion) convertRuntime(p *Package) {
	if p.Install != nil {
		c.convertDeployment(p.Install.deployment.DeepCopy())
	} else {
		c.Runtime.None = true
	}
	switch c.Templating = templatingOf(p); {
	case c.Templating != nil:
		c.lose(ReasonTemplating, behaviorFile, "",
			"a Provider runs no templating controller: install the package with a ClusterPackageInstall or a PackageInstall; "+
				"the templates can create objects of the CRDs in dependsOn, ConfigMaps, Events and Secrets only")
	case p.Behavior != nil:
		c.lose(ReasonTemplating, behaviorFile, "", "the file has no effect beside %s", installFile)
	}
}

// convertDeployment moves the fields that a package may set from a Deployment to the defaults, and reports the rest.
func (c *Conversion) convertDeployment(d *appsv1.Deployment) {
	c.Runtime = runtimedefaults.Defaults{ImageInPackageRegistry: true, Replicas: d.Spec.Replicas, Labels: defaultLabels(d)}
	if n := d.Spec.Replicas; n != nil && (*n < 0 || *n > runtimedefaults.MaxReplicas) {
		c.lose(
			ReasonDeploymentField, installFile, "spec.replicas", "%d replicas are outside of 0 to %d", *n,
			runtimedefaults.MaxReplicas,
		)
		c.Runtime.Replicas = nil
	}
	pod := &d.Spec.Template.Spec
	at := controllerIndex(pod.Containers)
	for i, other := range pod.Containers {
		if i != at {
			c.lose(
				ReasonContainer, installFile, containerField(i),
				"the container %s cannot run beside the runtime: its image has no digest", other.Name,
			)
		}
	}
	for i, other := range pod.InitContainers {
		c.lose(ReasonContainer, installFile, "spec.template.spec.initContainers["+strconv.Itoa(i)+
			"]", "the container %s cannot run before the runtime: its image has no digest", other.Name)
	}
	controller := &pod.Containers[at]
	c.convertContainer(controller, containerField(at))
	remaining, err := objectOf(controller)
	if err != nil {
		return
	}
	c.loseFields(containerField(at), remaining)
	pod.Containers, pod.InitContainers = nil, nil
	c.loseDeployment(d)
}

func containerField(i int) string { return "spec.template.spec.containers[" + strconv.Itoa(i) + "]" }

// controllerIndex returns the index of the container that runs the controller: the first one without an image, which
// runs the image of the package, otherwise the first one.
func controllerIndex(all []corev1.Container) int {
	return max(0, slices.IndexFunc(all, func(c corev1.Container) bool { return c.Image == "" }))
}

// defaultLabels returns the labels of a Deployment and its pods that defaults can contain.
func defaultLabels(d *appsv1.Deployment) map[string]string {
	var out map[string]string
	for _, labels := range []map[string]string{d.Labels, d.Spec.Template.Labels} {
		for k, v := range labels {
			if !strings.HasPrefix(k, runtimedefaults.LabelPrefix) {
				continue
			}
			if out == nil {
				out = map[string]string{}
			}
			out[k] = v
		}
	}
	return out
}

// convertContainer moves fields of the controller to the defaults. Fields that remain set have no equivalent.
func (c *Conversion) convertContainer(k *corev1.Container, field string) {
	r := &c.Runtime
	c.Image, r.Command, r.Args, r.WorkingDir, r.PullPolicy = k.Image, k.Command, k.Args, k.WorkingDir, k.ImagePullPolicy
	r.Requests, r.Limits = k.Resources.Requests, k.Resources.Limits
	k.Name, k.Image, k.Command, k.Args, k.WorkingDir, k.ImagePullPolicy = "", "", nil, nil, "", ""
	k.Resources.Requests, k.Resources.Limits = nil, nil
	k.Env = slices.DeleteFunc(k.Env, func(e corev1.EnvVar) bool {
		v := runtimedefaults.Variable{Name: e.Name, Value: e.Value}
		switch from := e.ValueFrom; {
		case from == nil:
		case from.FieldRef != nil:
			v.FieldPath = from.FieldRef.FieldPath
		default:
			c.lose(ReasonDeploymentField, installFile, field+".env."+
				e.Name, "a package must not read objects of the cluster into a variable")
			return true
		}
		r.Env = append(r.Env, v)
		return true
	})
	k.Ports = slices.DeleteFunc(k.Ports, func(p corev1.ContainerPort) bool {
		if p.HostPort != 0 || p.HostIP != "" {
			c.lose(ReasonDeploymentField, installFile, field+".ports.hostPort", "a package must not use the ports of a node")
		}
		r.Ports = append(r.Ports, runtimedefaults.Port{Name: p.Name, Port: p.ContainerPort, Protocol: p.Protocol})
		return true
	})
	for name, probe := range map[string]struct{ from, to **corev1.Probe }{
		"livenessProbe": {&k.LivenessProbe, &r.LivenessProbe}, "readinessProbe": {&k.ReadinessProbe, &r.ReadinessProbe},
		"startupProbe": {&k.StartupProbe, &r.StartupProbe},
	} {
		if p := *probe.from; p != nil &&
			(p.HTTPGet != nil && p.HTTPGet.Host != "" || p.TCPSocket != nil && p.TCPSocket.Host != "") {
			c.lose(ReasonDeploymentField, installFile, field+"."+name, "a probe must not name a host")
		} else {
			*probe.to = p
		}
		*probe.from = nil
	}
}

// loseDeployment reports the remaining fields of a Deployment, except for the ones that identify it and its pods: the
// package manager names and selects them itself.
func (c *Conversion) loseDeployment(d *appsv1.Deployment) {
	kept := func(k, _ string) bool { return strings.HasPrefix(k, runtimedefaults.LabelPrefix) }
	selector := d.Spec.Selector
	maps.DeleteFunc(d.Labels, kept)
	maps.DeleteFunc(d.Spec.Template.Labels, kept)
	if selector != nil {
		maps.DeleteFunc(d.Spec.Template.Labels, func(k, v string) bool { return selector.MatchLabels[k] == v })
		maps.DeleteFunc(d.Labels, func(k, v string) bool { return selector.MatchLabels[k] == v })
	}
	d.TypeMeta, d.Name, d.Namespace, d.Spec.Template.Name, d.Spec.Selector, d.Spec.Replicas = metav1.TypeMeta{}, "", "",
		"", nil, nil
	d.Status = appsv1.DeploymentStatus{}
	remaining, err := objectOf(d)
	if err == nil {
		c.loseFields("", remaining)
	}
}

// loseFields reports every field of an object that has a value, at its first level with more than one child.
func (c *Conversion) loseFields(at string, value any) {
	if isEmpty(value) {
		return
	}
	object, ok := value.(map[string]any)
	if !ok {
		c.lose(
			ReasonDeploymentField, installFile, at,
			"the field has no effect: only the package manager and the administrator set it",
		)
		return
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if key == "creationTimestamp" {
			continue
		}
		path := key
		if at != "" {
			path = at + "." + key
		}
		c.loseFields(path, object[key])
	}
}

// isEmpty reports whether a JSON value has no content.
func isEmpty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		for _, child := range v {
			if !isEmpty(child) {
				return false
			}
		}
		return true
	}
	return false
}
