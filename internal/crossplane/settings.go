package crossplane

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
)

// AnnotationFormerSettings on a Deployment of core has the settings that LeavePackages replaced.
const AnnotationFormerSettings = "xpkg.dev/former-settings"

// packageFlags are the flags of the initialization of core that install packages.
var packageFlags = []string{"--provider", "--configuration", "--function"}

// settings are the settings of a Deployment of core that LeavePackages replaces.
type settings struct {
	// Start and Init are the arguments of core and of its initialization.
	Start []string `json:"start,omitempty"`
	Init  []string `json:"init,omitempty"`
	// Replicas is the number of replicas of the RBAC manager.
	Replicas *int32 `json:"replicas,omitempty"`
}

// LeavePackages changes a Deployment of core so that core leaves the packages to the manager, and records the former
// settings in an annotation. Core then neither runs package runtimes, nor installs packages during its initialization,
// which the fence would make fail. The RBAC manager gets no replicas. It reports whether it changed the Deployment.
func LeavePackages(d *appsv1.Deployment) bool {
	former := settingsOf(d)
	wanted := former.withoutPackages(d)
	if equality.Semantic.DeepEqual(wanted, former) {
		return false
	}
	raw, err := json.Marshal(former)
	if err != nil {
		panic(err) // Strings and numbers always encode.
	}
	if d.Annotations == nil {
		d.Annotations = map[string]string{}
	}
	d.Annotations[AnnotationFormerSettings] = string(raw)
	wanted.apply(d)
	return true
}

// TakePackages undoes the change of LeavePackages, and keeps settings that were changed since. Without a record, core
// runs package runtimes as by default, and the RBAC manager has one replica. It reports whether it changed the
// Deployment. It fails if the record cannot be read.
func TakePackages(d *appsv1.Deployment) (bool, error) {
	current, former := settingsOf(d), settings{Replicas: new(int32(1))}
	raw, recorded := d.Annotations[AnnotationFormerSettings]
	if recorded {
		if err := json.Unmarshal([]byte(raw), &former); err != nil {
			return false, fmt.Errorf("annotation %s of Deployment %s/%s: %w", AnnotationFormerSettings, d.Namespace, d.Name, err)
		}
		delete(d.Annotations, AnnotationFormerSettings)
	}
	wanted := current
	switch {
	case d.Name == RBACDeploymentName && runs(*d):
	case d.Name == RBACDeploymentName:
		wanted.Replicas = former.Replicas
	case recorded && equality.Semantic.DeepEqual(former.withoutPackages(d), current):
		wanted = former
	default:
		wanted.Start = exchange(current.Start, former.Start, runtimeFlag)
		if recorded {
			wanted.Init = exchange(current.Init, former.Init, packageFlags...)
		}
	}
	wanted.apply(d)
	return recorded || !equality.Semantic.DeepEqual(wanted, current), nil
}

// InstallsPackages reports whether the initialization of core installs packages.
func InstallsPackages(d *appsv1.Deployment) bool {
	c := initContainer(d)
	if c == nil {
		return false
	}
	set, _ := split(c.Args, packageFlags)
	return len(set) > 0
}

// HasKnownArgs reports whether the container of core and its arguments are found in a Deployment.
func HasKnownArgs(d *appsv1.Deployment) bool { return startContainer(d) != nil }

// settingsOf returns the settings of a Deployment of core, or of its RBAC manager.
func settingsOf(d *appsv1.Deployment) settings {
	if d.Name == RBACDeploymentName {
		return settings{Replicas: new(ptr.Deref(d.Spec.Replicas, 1))}
	}
	out := settings{}
	if c := startContainer(d); c != nil {
		out.Start = c.Args
	}
	if c := initContainer(d); c != nil {
		out.Init = c.Args
	}
	return out
}

// apply sets the settings of a Deployment.
func (s settings) apply(d *appsv1.Deployment) {
	if d.Name == RBACDeploymentName {
		d.Spec.Replicas = s.Replicas
		return
	}
	if c := startContainer(d); c != nil {
		c.Args = s.Start
	}
	if c := initContainer(d); c != nil {
		c.Args = s.Init
	}
}

// withoutPackages returns the settings of a Deployment of core that leaves the packages to the manager.
func (s settings) withoutPackages(d *appsv1.Deployment) settings {
	if d.Name == RBACDeploymentName {
		return settings{Replicas: new(int32(0))}
	}
	out, with := settings{Start: s.Start}, d.DeepCopy()
	s.apply(with)
	if runsRuntimes(*with) {
		out.Start = exchange(s.Start, []string{ExternalRuntime}, runtimeFlag)
	}
	out.Init = exchange(s.Init, nil, packageFlags...)
	return out
}

// startContainer returns the container of core.
func startContainer(d *appsv1.Deployment) *corev1.Container {
	containers := d.Spec.Template.Spec.Containers
	i := slices.IndexFunc(
		containers, func(c corev1.Container) bool { return len(c.Args) > 1 && c.Args[0] == "core" && c.Args[1] == "start" },
	)
	if i < 0 && len(containers) == 1 {
		i = 0
	}
	if i < 0 {
		return nil
	}
	return &containers[i]
}

// initContainer returns the container of the initialization of core, or nil.
func initContainer(d *appsv1.Deployment) *corev1.Container {
	containers := d.Spec.Template.Spec.InitContainers
	i := slices.IndexFunc(
		containers, func(c corev1.Container) bool { return len(c.Args) > 1 && c.Args[0] == "core" && c.Args[1] == "init" },
	)
	if i < 0 {
		return nil
	}
	return &containers[i]
}

// exchange returns arguments with the flags of others instead of their own ones.
func exchange(args, others []string, flags ...string) []string {
	_, kept := split(args, flags)
	added, _ := split(others, flags)
	return append(kept, added...)
}

// split returns the arguments that set some flags, and all others.
func split(args, flags []string) (set, rest []string) {
	for i, arg := range args {
		if sets(args, i, flags) {
			set = append(set, arg)
		} else {
			rest = append(rest, arg)
		}
	}
	return set, rest
}

// sets reports whether an argument is one of some flags, or its value.
func sets(args []string, i int, flags []string) bool {
	name, _, _ := strings.Cut(args[i], "=")
	return slices.Contains(flags, name) || i > 0 && slices.Contains(flags, args[i-1])
}
