package manifests

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// client returns the name of the secret with the client certificate. Functions have no client
// certificate, because they make no calls.
func (in Input) client() string {
	if in.kind() == v1.FunctionKind {
		return ""
	}
	return in.TLSClientSecret
}

// certificateEnvironment returns the environment variables with the folders of the
// certificates.
func (in Input) certificateEnvironment() []corev1.EnvVar {
	var out []corev1.EnvVar
	if in.client() != "" {
		out = append(out, corev1.EnvVar{Name: clientVariable, Value: clientCertificates})
	}
	if in.TLSServerSecret == "" {
		return out
	}
	out = append(out, corev1.EnvVar{Name: serverVariable, Value: serverCertificates})
	if in.kind() == v1.ProviderKind {
		// Older providers read the folder of their webhook certificates from this
		// variable.
		out = append(out, corev1.EnvVar{Name: webhookVariable, Value: "$(" + serverVariable + ")"})
	}
	return out
}

// certificates mounts the certificates in the runtime container.
func (in Input) certificates(pod *corev1.PodSpec) {
	if secret := in.client(); secret != "" {
		mount(pod, clientVolume, secret, clientCertificates)
	}
	if in.TLSServerSecret != "" {
		mount(pod, serverVolume, in.TLSServerSecret, serverCertificates)
	}
}

// annotateCertificates sets an annotation on the pod template that changes with the
// certificates, so that the Deployment rolls out new pods. Functions read their
// certificate once, at startup, and would keep serving an expired one. Providers serve
// webhooks with a library that reloads certificates.
func (in Input) annotateCertificates(template *corev1.PodTemplateSpec) {
	if in.Certificates == "" {
		return
	}
	if template.Annotations == nil {
		template.Annotations = map[string]string{}
	}
	template.Annotations[CertificatesAnnotation] = in.Certificates
}

// mount mounts a secret with a certificate. It replaces a volume of the same name and
// every mount at the same path.
func mount(pod *corev1.PodSpec, volume, secret, path string) {
	items := []corev1.KeyToPath{}
	for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey, AuthorityKey} {
		items = append(items, corev1.KeyToPath{Key: key, Path: key})
	}
	pod.Volumes = slices.DeleteFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == volume })
	pod.Volumes = append(pod.Volumes, corev1.Volume{
		Name: volume, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret, Items: items}},
	})
	c := &pod.Containers[0]
	c.VolumeMounts = slices.DeleteFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == path })
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volume, ReadOnly: true, MountPath: path})
}
