package bootstrap

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	// metricsPort and healthPort are the ports on which the manager listens.
	metricsPort, healthPort = 8080, 8081
	// user is the numeric user that the manager runs as. It has no account on a node.
	user = 65532

	cacheVolume, cacheMount = "cache", "/cache"

	// indexKeysAnnotation on the pods of the manager has the keys of indexes, which are mounted as a file. Unlike a
	// ConfigMap, it needs no permissions of its own, and a change restarts the manager.
	indexKeysAnnotation = "xpkg.dev/index-keys"
	// The volume of the keys.
	indexKeysVolume, indexKeysMount, indexKeysFile = "index-keys", "/index-keys", "keys.pem"
)

func (o Options) deployment() Object {
	return &appsv1.Deployment{
		TypeMeta: typeMeta(appsv1.SchemeGroupVersion, "Deployment"), ObjectMeta: o.metadata(Name),
		Spec: appsv1.DeploymentSpec{
			Replicas: &o.Replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels()},
			// A new manager is on standby before the old one stops, and then takes over.
			Strategy: appsv1.DeploymentStrategy{
				Type: appsv1.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDeployment{
					MaxUnavailable: new(intstr.FromInt32(0)), MaxSurge: new(intstr.FromInt32(1)),
				},
			},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels(), Annotations: o.podAnnotations()},
				Spec:       o.pod(),
			},
		},
	}
}

func (o Options) podAnnotations() map[string]string {
	out := map[string]string{
		"prometheus.io/scrape": "true", "prometheus.io/port": fmt.Sprint(metricsPort), "prometheus.io/path": "/metrics",
	}
	if o.IndexKeys != "" {
		out[indexKeysAnnotation] = o.IndexKeys
	}
	return out
}

func (o Options) pod() corev1.PodSpec {
	pod := corev1.PodSpec{
		ServiceAccountName: Name,
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: new(true), RunAsUser: new(int64(user)), RunAsGroup: new(int64(user)), FSGroup: new(int64(user)),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers:        []corev1.Container{o.container()},
		Volumes:           o.volumes(),
		NodeSelector:      o.NodeSelector,
		Tolerations:       o.Tolerations,
		Affinity:          o.Affinity,
		PriorityClassName: o.PriorityClassName,
		// The loss of one node should not affect all replicas.
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector: &metav1.LabelSelector{MatchLabels: labels()},
		}},
	}
	for _, name := range o.ImagePullSecrets {
		pod.ImagePullSecrets = append(pod.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
	return pod
}

// MemoryLimitVariable has the memory limit of the container in bytes. The manager collects garbage more often before it
// reaches the limit.
const MemoryLimitVariable = "XPKG_MEMORY_LIMIT"

func (o Options) container() corev1.Container {
	return corev1.Container{
		Name: Name, Image: o.Image, ImagePullPolicy: corev1.PullIfNotPresent,
		Args: slices.Concat([]string{
			"manager", "--namespace=$(POD_NAMESPACE)", "--leader-election",
			"--cache-dir=" + cacheMount + "/packages", "--cache-limit=" + o.CacheLimit,
			fmt.Sprintf("--metrics-address=:%d", metricsPort), fmt.Sprintf("--health-address=:%d", healthPort),
			"--log-format=json",
		}, o.chosenArgs(), o.Args),
		Env: []corev1.EnvVar{
			{Name: "POD_NAMESPACE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{
				FieldPath: "metadata.namespace",
			}}},
			{Name: MemoryLimitVariable, ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{
				Resource: "limits.memory",
			}}},
			// The folder stays empty; some libraries fail without HOME.
			{Name: "HOME", Value: cacheMount},
		},
		Ports: []corev1.ContainerPort{
			{Name: "metrics", ContainerPort: metricsPort, Protocol: corev1.ProtocolTCP},
			{Name: "health", ContainerPort: healthPort, Protocol: corev1.ProtocolTCP},
		},
		StartupProbe:   startupProbe(),
		LivenessProbe:  probe("/healthz"),
		ReadinessProbe: probe("/readyz"),
		Resources:      o.Resources,
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), Privileged: new(false), ReadOnlyRootFilesystem: new(true),
			RunAsNonRoot: new(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
		VolumeMounts: o.mounts(),
	}
}

// startupProbe returns a probe that gives a manager two minutes to start, for example on
// a node that is busy, before the liveness probe applies.
func startupProbe() *corev1.Probe {
	p := probe("/healthz")
	p.PeriodSeconds, p.FailureThreshold = 2, 60
	return p
}

func probe(path string) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:   corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("health")}},
		TimeoutSeconds: 5, PeriodSeconds: 10,
	}
}

func (o Options) volumes() []corev1.Volume {
	out := []corev1.Volume{{Name: cacheVolume, VolumeSource: o.cache()}}
	if o.IndexKeys == "" {
		return out
	}
	key := &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['" + indexKeysAnnotation + "']"}
	return append(out, corev1.Volume{Name: indexKeysVolume, VolumeSource: corev1.VolumeSource{
		DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{{
			Path: indexKeysFile, FieldRef: key,
		}}},
	}})
}

func (o Options) mounts() []corev1.VolumeMount {
	out := []corev1.VolumeMount{{Name: cacheVolume, MountPath: cacheMount}}
	if o.IndexKeys != "" {
		out = append(out, corev1.VolumeMount{Name: indexKeysVolume, MountPath: indexKeysMount, ReadOnly: true})
	}
	return out
}

func (o Options) cache() corev1.VolumeSource {
	if o.CacheClaim != "" {
		return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: o.CacheClaim}}
	}
	size := resource.MustParse(o.CacheSize)
	return corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &size}}
}
