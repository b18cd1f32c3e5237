//go:build tools

package main

// The programs of Kubernetes that build.sh builds for the test with a real node. These imports keep their modules in
// go.sum.
import (
	_ "k8s.io/kubernetes/cmd/kube-scheduler/app"
	_ "k8s.io/kubernetes/cmd/kubelet/app"
)
