package cluster_test

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
)

// These tests prove the features of the control plane that packages need.

func newClient(t *testing.T) kubernetes.Interface {
	t.Helper()
	c, err := kubernetes.NewForConfig(cluster.Start(t))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// eventually waits for a condition and logs the time that it took.
func eventually(t *testing.T, what string, condition func(context.Context) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	begin := time.Now()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !condition(ctx) {
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not within a minute", what)
		case <-tick.C:
		}
	}
	t.Logf("%s after %s", what, time.Since(begin).Round(time.Millisecond))
}

func namespace(t *testing.T, c kubernetes.Interface) string {
	t.Helper()
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	made, err := c.CoreV1().Namespaces().Create(t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made.Name
}

func TestDeploymentMakesPods(t *testing.T) {
	c := newClient(t)
	ns := namespace(t, c)
	labels := map[string]string{"app": "a"}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "a"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}},
			},
		},
	}
	if _, err := c.AppsV1().Deployments(ns).Create(t.Context(), deployment, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a pod", func(ctx context.Context) bool {
		pods, err := c.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
		return err == nil && len(pods.Items) == 1
	})
}

// A Job whose Pod has ended is complete, and is deleted when its time to live has passed.
func TestFinishedJobIsDeleted(t *testing.T) {
	c := newClient(t)
	ns := namespace(t, c)
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "a"},
		Spec: batchv1.JobSpec{
			TTLSecondsAfterFinished: new(int32),
			Template: corev1.PodTemplateSpec{
				Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{
					Name: "a", Image: "a",
				}}},
			},
		},
	}
	if _, err := c.BatchV1().Jobs(ns).Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a finished pod", func(ctx context.Context) bool {
		pods, err := c.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
		if err != nil || len(pods.Items) != 1 {
			return false
		}
		pod := &pods.Items[0]
		pod.Status.Phase = corev1.PodSucceeded
		_, err = c.CoreV1().Pods(ns).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
		return err == nil
	})
	eventually(t, "no Job", func(ctx context.Context) bool {
		_, err := c.BatchV1().Jobs(ns).Get(ctx, "a", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

// A Pod that is ready is an endpoint of its Service.
func TestServiceHasEndpoints(t *testing.T) {
	c := newClient(t)
	ns := namespace(t, c)
	node, err := c.CoreV1().Nodes().
		Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"app": "a"}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: labels},
		Spec:       corev1.PodSpec{NodeName: node.Name, Containers: []corev1.Container{{Name: "a", Image: "a"}}},
	}
	pod, err = c.CoreV1().Pods(ns).Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod.Status = corev1.PodStatus{
		Phase:      corev1.PodRunning,
		PodIP:      "192.0.2.1",
		PodIPs:     []corev1.PodIP{{IP: "192.0.2.1"}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}
	if _, err := c.CoreV1().Pods(ns).UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "a"},
		Spec:       corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 80}}},
	}
	if _, err := c.CoreV1().Services(ns).Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "an EndpointSlice with the address", func(ctx context.Context) bool {
		slices, err := c.DiscoveryV1().EndpointSlices(ns).
			List(ctx, metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=a"})
		return err == nil && len(slices.Items) == 1 && len(slices.Items[0].Endpoints) == 1 &&
			slices.Items[0].Endpoints[0].Addresses[0] == "192.0.2.1"
	})
	eventually(t, "Endpoints with the address", func(ctx context.Context) bool {
		endpoints, err := c.CoreV1().Endpoints(ns).Get(ctx, "a", metav1.GetOptions{})
		return err == nil && len(endpoints.Subsets) == 1 && len(endpoints.Subsets[0].Addresses) == 1
	})
}

// A quota has no controller here, so it must not stop anything either.
func TestQuotaStopsNothing(t *testing.T) {
	c := newClient(t)
	ns := namespace(t, c)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: corev1.ResourceQuotaSpec{
		Hard: corev1.ResourceList{"count/configmaps": {}},
	}}
	if _, err := c.CoreV1().ResourceQuotas(ns).Create(t.Context(), quota, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	if _, err := c.CoreV1().ConfigMaps(ns).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
}

func TestOwnedObjectIsCollected(t *testing.T) {
	c := newClient(t)
	maps := c.CoreV1().ConfigMaps(namespace(t, c))
	owner, err := maps.Create(
		t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{},
	)
	if err != nil {
		t.Fatal(err)
	}
	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owned", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID},
	}}}
	if _, err := maps.Create(t.Context(), owned, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := maps.Delete(t.Context(), owner.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "collected", func(ctx context.Context) bool {
		_, err := maps.Get(ctx, owned.Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

func TestNamespaceGoesAway(t *testing.T) {
	c := newClient(t)
	ns := namespace(t, c)
	if err := c.CoreV1().Namespaces().Delete(t.Context(), ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "namespace gone", func(ctx context.Context) bool {
		_, err := c.CoreV1().Namespaces().Get(ctx, ns, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

func TestServiceAccountHasTokenAndCABundle(t *testing.T) {
	c := newClient(t)
	ns := namespace(t, c)
	eventually(t, "default account and authority", func(ctx context.Context) bool {
		_, account := c.CoreV1().ServiceAccounts(ns).Get(ctx, "default", metav1.GetOptions{})
		_, ca := c.CoreV1().ConfigMaps(ns).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
		return account == nil && ca == nil
	})
	token, err := c.CoreV1().ServiceAccounts(ns).
		CreateToken(t.Context(), "default", &authv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	review := &authv1.TokenReview{Spec: authv1.TokenReviewSpec{Token: token.Status.Token}}
	review, err = c.AuthenticationV1().TokenReviews().Create(t.Context(), review, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if want := "system:serviceaccount:" + ns + ":default"; review.Status.User.Username != want {
		t.Errorf("the token is of %q, want %q", review.Status.User.Username, want)
	}
}

func TestClusterRolesAreAggregated(t *testing.T) {
	c := newClient(t)
	roles := c.RbacV1().ClusterRoles()
	label := map[string]string{"test.xpkg.dev/aggregate": "yes"}
	rule := rbacv1.PolicyRule{APIGroups: []string{"a"}, Resources: []string{"b"}, Verbs: []string{"get"}}
	part := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "test:part", Labels: label}, Rules: []rbacv1.PolicyRule{rule},
	}
	whole := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{
		Name: "test:whole",
	}, AggregationRule: &rbacv1.AggregationRule{
		ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: label}},
	}}
	for _, role := range []*rbacv1.ClusterRole{part, whole} {
		if _, err := roles.Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "aggregated", func(ctx context.Context) bool {
		role, err := roles.Get(ctx, whole.Name, metav1.GetOptions{})
		return err == nil && len(role.Rules) == 1
	})
}

var widgets = schema.GroupVersionResource{Group: "test.xpkg.dev", Version: "v1", Resource: "widgets"}

// Without their schemas in OpenAPI, custom resources are still checked and merged
// by the server, and still collected.
func TestCustomResource(t *testing.T) {
	config := cluster.Start(t)
	definitions := apiextclient.NewForConfigOrDie(config).ApiextensionsV1().CustomResourceDefinitions()
	if _, err := definitions.Create(t.Context(), widgetDefinition(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c := dynamic.NewForConfigOrDie(config).Resource(widgets)
	eventually(t, "served", func(ctx context.Context) bool {
		_, err := c.List(ctx, metav1.ListOptions{})
		return err == nil
	})
	widget := func(name string, size any, owner ...metav1.OwnerReference) *unstructured.Unstructured {
		object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": size}}}
		object.SetAPIVersion(widgets.GroupVersion().String())
		object.SetKind("Widget")
		object.SetName(name)
		object.SetOwnerReferences(owner)
		return object
	}
	if _, err := c.Create(t.Context(), widget("wrong", "big"), metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a value of the wrong type: got %v, want Invalid", err)
	}
	applied := metav1.ApplyOptions{FieldManager: "test"}
	owner, err := c.Apply(t.Context(), "owner", widget("owner", int64(1)), applied)
	if err != nil {
		t.Fatal(err)
	}
	reference := metav1.OwnerReference{
		APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID(),
	}
	if _, err := c.Apply(t.Context(), "owned", widget("owned", int64(2), reference), applied); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), "owner", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "collected", func(ctx context.Context) bool {
		_, err := c.Get(ctx, "owned", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

func widgetDefinition() *apiext.CustomResourceDefinition {
	size := apiext.JSONSchemaProps{Type: "integer"}
	spec := apiext.JSONSchemaProps{Type: "object", Properties: map[string]apiext.JSONSchemaProps{"size": size}}
	return &apiext.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.test.xpkg.dev"},
		Spec: apiext.CustomResourceDefinitionSpec{
			Group: widgets.Group,
			Scope: apiext.ClusterScoped,
			Names: apiext.CustomResourceDefinitionNames{
				Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList",
			},
			Versions: []apiext.CustomResourceDefinitionVersion{{
				Name: widgets.Version, Served: true, Storage: true,
				Schema: &apiext.CustomResourceValidation{OpenAPIV3Schema: &apiext.JSONSchemaProps{
					Type: "object", Properties: map[string]apiext.JSONSchemaProps{"spec": spec},
				}},
			}},
		},
	}
}

// No controller fills a Secret with a token: with one, every client that may create Secrets would get the token of
// every ServiceAccount. Tokens are requested.
func TestTokensAreRequestedOnly(t *testing.T) {
	c := newClient(t)
	ns := namespace(t, c)
	account, err := c.CoreV1().ServiceAccounts(ns).
		Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "token", Annotations: map[string]string{
			corev1.ServiceAccountNameKey: account.Name,
		}},
		Type: corev1.SecretTypeServiceAccountToken,
	}
	if _, err := c.CoreV1().Secrets(ns).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	request, err := c.CoreV1().ServiceAccounts(ns).
		CreateToken(t.Context(), account.Name, &authv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil || request.Status.Token == "" {
		t.Errorf("no token for a request: %v", err)
	}
	// The other controllers have processed a later namespace by then.
	later := namespace(t, c)
	eventually(t, "the CA and the ServiceAccount of a later namespace", func(ctx context.Context) bool {
		_, errCA := c.CoreV1().ConfigMaps(later).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
		_, err := c.CoreV1().ServiceAccounts(later).Get(ctx, "default", metav1.GetOptions{})
		return err == nil && errCA == nil
	})
	filled, err := c.CoreV1().Secrets(ns).Get(t.Context(), secret.Name, metav1.GetOptions{})
	if err != nil || len(filled.Data) > 0 {
		t.Errorf("the Secret has %d keys (%v), want none", len(filled.Data), err)
	}
}
