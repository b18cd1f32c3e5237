// Package node tests the manager and package runtimes as Pods of a real node: kubelet, kube-scheduler, containerd and
// runc.
package node
