package manifests

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Privilege is a feature of a pod with which a runtime configuration can break the
// isolation of a runtime from its node or from other identities.
type Privilege string

// The privileges that a runtime gets only if the manager allows them. They include the
// features that the baseline Pod Security Standard forbids.
const (
	// HostNetwork is the network of the node, one of its ports, or a request of the node to another host than the pod.
	HostNetwork Privilege = "HostNetwork"
	// HostPID is the process namespace of the node.
	HostPID Privilege = "HostPID"
	// HostIPC is the IPC namespace of the node.
	HostIPC Privilege = "HostIPC"
	// HostPath is a volume with files of the node, or one that a program on the node provides.
	HostPath Privilege = "HostPath"
	// Privileged is a container without isolation, or with less isolation than the default.
	Privileged Privilege = "Privileged"
	// Capabilities is a Linux capability beyond the default of the container runtime.
	Capabilities Privilege = "Capabilities"
	// ServiceAccount is a ServiceAccount that xpkg did not create for the package, or for another package with the same
	// runtime configuration.
	ServiceAccount Privilege = "ServiceAccount"
	// Certificates is a Secret with a certificate of another package, of Crossplane core, or of their CA.
	Certificates Privilege = "Certificates"
)

// AllPrivileges returns all privileges.
func AllPrivileges() []Privilege {
	return []Privilege{HostNetwork, HostPID, HostIPC, HostPath, Privileged, Capabilities, ServiceAccount, Certificates}
}

// ParsePrivileges parses names of privileges. The name "*" stands for all of them.
func ParsePrivileges(names []string) ([]Privilege, error) {
	var out []Privilege
	for _, name := range names {
		switch p := Privilege(name); {
		case name == "*":
			return AllPrivileges(), nil
		case !slices.Contains(AllPrivileges(), p):
			return nil, fmt.Errorf("%q is none of * and %v", name, AllPrivileges())
		default:
			out = append(out, p)
		}
	}
	return out, nil
}

// JoinPrivileges returns the names of privileges, separated by commas.
func JoinPrivileges(all []Privilege) string {
	names := make([]string, len(all))
	for i, p := range all {
		names[i] = string(p)
	}
	return strings.Join(names, ",")
}

// privilegeUse is a privilege with the field that uses it.
type privilegeUse struct {
	privilege Privilege
	field     string
}

// CheckPrivileges fails with RuntimePrivileges if the pod of a runtime uses a privilege
// that is not allowed.
func (o Objects) CheckPrivileges(allowed []Privilege) error {
	pod := o.Deployment.Spec.Template.Spec
	return refuse(o.Owner.Package, append(podPrivileges(pod), foreignCertificates(pod, o.Owner.Package.Name)...), allowed)
}

// CheckCertificates fails with RuntimePrivileges unless the privilege Certificates is allowed or not used.
func (o Objects) CheckCertificates(allowed []Privilege) error {
	return refuse(o.Owner.Package, foreignCertificates(o.Deployment.Spec.Template.Spec, o.Owner.Package.Name), allowed)
}

// CheckPod fails as [Objects.CheckPrivileges] does for the Pod of a package to which no privileges are allowed.
func CheckPod(pkg plan.Owner, pod corev1.PodSpec) error { return refuse(pkg, podPrivileges(pod), nil) }

// CheckForeignAccount fails with RuntimePrivileges unless the privilege ServiceAccount is allowed. Holder is the owner
// of the ServiceAccount of the runtime, or nil.
func (o Objects) CheckForeignAccount(holder *metav1.OwnerReference, allowed []Privilege) error {
	field := "the ServiceAccount " + o.ServiceAccountName + ", which xpkg did not create for it"
	if holder != nil {
		field = "the ServiceAccount " + o.ServiceAccountName + ", which belongs to " + holder.Kind + "/" + holder.Name
	}
	return refuse(o.Owner.Package, []privilegeUse{{ServiceAccount, field}}, allowed)
}

func refuse(pkg plan.Owner, uses []privilegeUse, allowed []Privilege) error {
	var fields, flags []string
	for _, u := range uses {
		if slices.Contains(allowed, u.privilege) {
			continue
		}
		fields = append(fields, u.field)
		if flag := privilegeFlag + string(u.privilege); !slices.Contains(flags, flag) {
			flags = append(flags, flag)
		}
	}
	if len(fields) == 0 {
		return nil
	}
	name := v1.ObjectName(pkg.Kind, pkg.Name)
	if pkg.Namespace != "" {
		return ErrPrivileges.New(nil, "the controller of %s requests %s", name, strings.Join(fields, ", ")).
			WithDo(
				"Remove this from spec.controller.deployment.spec: the controller of a Package has no privileges beyond its namespace.",
			)
	}
	return ErrPrivileges.New(nil, "the runtime configuration of %s requests %s", name, strings.Join(fields, ", ")).
		WithDo("Remove this from the DeploymentRuntimeConfig or ControllerConfig of the package, or restart the manager with %s.",
			wording.RestartManager(flags...))
}

func podPrivileges(pod corev1.PodSpec) []privilegeUse {
	var uses []privilegeUse
	add := func(used bool, p Privilege, format string, args ...any) {
		if used {
			uses = append(uses, privilegeUse{p, fmt.Sprintf(format, args...)})
		}
	}
	add(pod.HostNetwork, HostNetwork, "hostNetwork")
	add(pod.HostPID, HostPID, "hostPID")
	add(pod.HostIPC, HostIPC, "hostIPC")
	for _, v := range pod.Volumes {
		add(v.HostPath != nil, HostPath, "the hostPath volume %s", v.Name)
		add(v.FlexVolume != nil, HostPath, "the flexVolume volume %s", v.Name)
	}
	if s := pod.SecurityContext; s != nil {
		add(len(s.Sysctls) > 0, Privileged, "sysctls")
		add(unconfined(s.SeccompProfile, s.AppArmorProfile), Privileged, "an unconfined pod")
		add(changesSELinux(s.SELinuxOptions), Privileged, "seLinuxOptions")
		add(s.WindowsOptions != nil && value(s.WindowsOptions.HostProcess), Privileged, "hostProcess")
	}
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		for _, port := range c.Ports {
			add(port.HostPort != 0, HostNetwork, "the hostPort %d", port.HostPort)
		}
		for _, host := range requestedHosts(c) {
			add(true, HostNetwork, "requests of the node to the host %s", host)
		}
		s := c.SecurityContext
		if s == nil {
			continue
		}
		add(value(s.Privileged), Privileged, "the privileged container %s", c.Name)
		add(s.ProcMount != nil &&
			*s.ProcMount != corev1.DefaultProcMount, Privileged, "an unmasked /proc in the container %s", c.Name)
		add(unconfined(s.SeccompProfile, s.AppArmorProfile), Privileged, "the unconfined container %s", c.Name)
		add(changesSELinux(s.SELinuxOptions), Privileged, "seLinuxOptions of the container %s", c.Name)
		add(s.WindowsOptions != nil &&
			value(s.WindowsOptions.HostProcess), Privileged, "hostProcess in the container %s", c.Name)
		if s.Capabilities != nil {
			for _, capability := range s.Capabilities.Add {
				add(!slices.Contains(defaultCapabilities, capability), Capabilities, "the capability %s", capability)
			}
		}
	}
	return uses
}

// foreignCertificates returns the uses of Secrets with certificates that do not belong to a package.
func foreignCertificates(pod corev1.PodSpec, pkg string) []privilegeUse {
	var uses []privilegeUse
	add := func(secret string) {
		isCertificate := secret == v1.RootCASecretName || v1.IsTLSSecretName(secret)
		if isCertificate && secret != v1.TLSServerSecretName(pkg) && secret != v1.TLSClientSecretName(pkg) {
			uses = append(uses, privilegeUse{Certificates, "the Secret " + secret})
		}
	}
	for _, v := range pod.Volumes {
		if v.Secret != nil {
			add(v.Secret.SecretName)
		}
		if v.Projected != nil {
			for _, source := range v.Projected.Sources {
				if source.Secret != nil {
					add(source.Secret.Name)
				}
			}
		}
	}
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		for _, from := range c.EnvFrom {
			if from.SecretRef != nil {
				add(from.SecretRef.Name)
			}
		}
		for _, e := range c.Env {
			if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
				add(e.ValueFrom.SecretKeyRef.Name)
			}
		}
	}
	return uses
}

// defaultCapabilities are the capabilities that the baseline Pod Security Standard allows,
// which container runtimes add by default.
var defaultCapabilities = []corev1.Capability{
	"AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP", "SETGID",
	"SETPCAP", "SETUID", "SYS_CHROOT",
}

func unconfined(seccomp *corev1.SeccompProfile, appArmor *corev1.AppArmorProfile) bool {
	return seccomp != nil && seccomp.Type == corev1.SeccompProfileTypeUnconfined ||
		appArmor != nil && appArmor.Type == corev1.AppArmorProfileTypeUnconfined
}

// containerTypes are the SELinux types of containers that the baseline Pod Security Standard allows.
var containerTypes = []string{"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"}

// changesSELinux reports whether SELinux options give a container other permissions than the type of a container has.
func changesSELinux(o *corev1.SELinuxOptions) bool {
	return o != nil && (o.User != "" || o.Role != "" || !slices.Contains(containerTypes, o.Type))
}

// requestedHosts returns the hosts other than the pod to which a node sends requests for the probes and the lifecycle
// of a container.
func requestedHosts(c corev1.Container) []string {
	var out []string
	add := func(get *corev1.HTTPGetAction, open *corev1.TCPSocketAction) {
		if get != nil && get.Host != "" {
			out = append(out, get.Host)
		}
		if open != nil && open.Host != "" {
			out = append(out, open.Host)
		}
	}
	for _, p := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if p != nil {
			add(p.HTTPGet, p.TCPSocket)
		}
	}
	if l := c.Lifecycle; l != nil {
		for _, h := range []*corev1.LifecycleHandler{l.PostStart, l.PreStop} {
			if h != nil {
				add(h.HTTPGet, h.TCPSocket)
			}
		}
	}
	return out
}
