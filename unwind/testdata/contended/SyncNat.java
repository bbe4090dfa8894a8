// Two threads wait for the monitors of synchronized native methods (SyncNat.c). The recordings
// beside are both threads, walked by the steps of TestRecordWalks (sampler/session).
public class SyncNat {
  static native void hold(int a, long b, Object c, int d);
  static synchronized native void held(int a, long b, Object c, int d);
  synchronized native void heldI(int a, long b, Object c, int d, double e);
  static { System.load(System.getProperty("lib")); }
  static void warm(SyncNat s, boolean stat){ if (stat) held(0,2,s,3); else s.heldI(0,2,s,3,1.0); }
  public static void main(String[] a) throws Exception {
    SyncNat s = new SyncNat();
    for (int i=0;i<20000;i++){ warm(s,true); warm(s,false);} 
    Thread h = new Thread(() -> { synchronized(SyncNat.class){ synchronized(s) { hold(1000,2,s,3);} } }, "holder"); h.start();
    Thread.sleep(500);
    Thread t1 = new Thread(() -> warm(s,true), "static-waiter"); t1.start();
    Thread t2 = new Thread(() -> warm(s,false), "inst-waiter"); t2.start();
    System.out.println("ready"); 
    h.join();
  }
}
