print("drydock")
