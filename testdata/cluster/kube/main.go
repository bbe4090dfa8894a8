// Kube is the parts of a Kubernetes node in one program: etcd, the control plane, kubelet and kubectl. Its name selects
// the part, as busybox does. The parts share most of their code, so one program is built in a third of the time.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	var part *cobra.Command
	switch name := filepath.Base(os.Args[0]); name {
	case "etcd":
		etcdmain.Main(os.Args)
		return
	case "kube-apiserver":
		part = apiserver.NewAPIServerCommand()
	case "kube-controller-manager":
		part = manager.NewControllerManagerCommand()
	case "kube-scheduler":
		part = scheduler.NewSchedulerCommand()
	case "kubelet":
		part = kubelet.NewKubeletCommand(context.Background())
	case "kubectl":
		part = kubectl.NewDefaultKubectlCommand()
	default:
		fmt.Fprintln(os.Stderr, name, "is no part of Kubernetes")
		os.Exit(2)
	}
	os.Exit(cli.Run(part))
}
