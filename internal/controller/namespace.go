package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// ensureNamespace creates the namespace of the manager if the options require it and it does not exist. Without the
// permission to create namespaces, it succeeds, because the namespace may exist.
func ensureNamespace(ctx context.Context, o Options) error {
	if !o.MakeNamespace {
		return nil
	}
	c, err := typedcorev1.NewForConfig(o.Config)
	if err != nil {
		return fmt.Errorf("namespaces: %w", err)
	}
	if _, err := c.Namespaces().Get(ctx, o.namespace(), metav1.GetOptions{}); err == nil {
		return nil
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.namespace()}}
	_, err = c.Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) && !apierrors.IsForbidden(err) {
		return fmt.Errorf("create the namespace %s: %w", o.namespace(), err)
	}
	return nil
}
